//! The `traffic` of a flow: a kind alone, or a table with its numbers.

use brakelight_core::time::Duration;

use super::table::{Field, Table};
use crate::problem::InputError;
use crate::traffic::{Arrivals, Call, Game, OnOff, RequestResponse, ShortFlows, SizeLaw, Traffic, Video};

const EXPECTED: &str = "a kind of traffic: backlogged, size, on-off, short-flows, rate-limited, request-response, \
                        game, video or call, alone or as in `{ kind = \"size\", size = \"1MB\" }`";

pub(super) fn read(field: Field<'_>) -> Result<Traffic, InputError> {
    let kind = if field.is_text() { Some(field.text(EXPECTED)?) } else { field.peek("kind") };
    let keys: &'static [&'static str] = match kind.unwrap_or_default() {
        "backlogged" => &["kind"],
        "size" => &["kind", "size"],
        "on-off" => &["kind", "on", "off", "rate", "random"],
        "short-flows" => &["kind", "per_second", "load", "size", "pareto_shape"],
        "rate-limited" => &["kind", "rate"],
        "request-response" => &["kind", "request", "response", "think"],
        "game" => &["kind", "size", "interval"],
        "video" => &["kind", "ladder", "segment", "buffer", "startup"],
        "call" => &["kind", "min_rate", "max_rate", "fps", "deadline"],
        _ => return Err(field.malformed(EXPECTED)),
    };
    let kind = kind.unwrap_or_default();
    let owner = match field.owner() {
        "" => "traffic".to_string(),
        owner => format!("{owner}, traffic"),
    };
    if !field.is_text() {
        return read_table(kind, &field.table(owner, keys, EXPECTED)?);
    }
    match kind {
        "backlogged" => Ok(Traffic::Backlogged),
        "game" => Ok(Traffic::Game(Game::default())),
        "video" => Ok(Traffic::Video(Video::default())),
        "call" => Ok(Traffic::Call(Call::default())),
        _ => {
            Err(field.contradiction(format!("`{kind}` needs numbers: give a table with {}", keys.join(", "))))
        }
    }
}

fn read_table(kind: &str, table: &Table<'_>) -> Result<Traffic, InputError> {
    Ok(match kind {
        "size" => Traffic::Size(table.require("size", "the size of the transfer")?.quantity()?),
        "on-off" => Traffic::OnOff(OnOff {
            on: table.require("on", "how long it sends")?.quantity()?,
            off: table.require("off", "how long it is silent")?.quantity()?,
            rate: table.get("rate").map(|field| field.quantity()).transpose()?,
            random: table.boolean("random", false)?,
        }),
        "short-flows" => Traffic::ShortFlows(short_flows(table)?),
        "rate-limited" => Traffic::RateLimited(table.require("rate", "the rate offered")?.quantity()?),
        "request-response" => Traffic::RequestResponse(RequestResponse {
            request: table.require("request", "the size of a request")?.quantity()?,
            response: table.require("response", "the size of a response")?.quantity()?,
            think: table.quantity("think", Duration::ZERO)?,
        }),
        "game" => {
            let game = Game::default();
            Traffic::Game(Game {
                size: table.quantity("size", game.size)?,
                interval: table.quantity("interval", game.interval)?,
            })
        }
        "video" => {
            let video = Video::default();
            let ladder = table.get("ladder").map(|field| {
                field
                    .array("a list of rates, ascending")?
                    .iter()
                    .map(|rung| rung.quantity())
                    .collect::<Result<Vec<_>, _>>()
            });
            Traffic::Video(Video {
                ladder: ladder.unwrap_or(Ok(video.ladder))?,
                segment: table.quantity("segment", video.segment)?,
                buffer: table.quantity("buffer", video.buffer)?,
                startup: table.quantity("startup", video.startup)?,
            })
        }
        "call" => {
            let call = Call::default();
            Traffic::Call(Call {
                min_rate: table.quantity("min_rate", call.min_rate)?,
                max_rate: table.quantity("max_rate", call.max_rate)?,
                fps: table.integer("fps", call.fps)?,
                deadline: table.quantity("deadline", call.deadline)?,
            })
        }
        _ => Traffic::Backlogged,
    })
}

fn short_flows(table: &Table<'_>) -> Result<ShortFlows, InputError> {
    let arrivals = match (table.get("per_second"), table.get("load")) {
        (Some(rate), None) => Arrivals::PerSecond(rate.number()?),
        (None, Some(load)) => Arrivals::Load(load.quantity()?),
        (Some(_), Some(load)) => {
            return Err(load.contradiction("give `per_second` or `load`, not both".to_string()));
        }
        (None, None) => {
            return Err(
                table.missing("per_second", "how many arrive per second, or `load`, the rate they offer")
            );
        }
    };
    let mean =
        table.require("size", "the size of a connection, or its mean with `pareto_shape`")?.quantity()?;
    let size = match table.get("pareto_shape") {
        Some(shape) => SizeLaw::Pareto { mean, shape: shape.number()? },
        None => SizeLaw::Fixed(mean),
    };
    Ok(ShortFlows { arrivals, size })
}
