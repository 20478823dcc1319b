//! How schemes are told apart: by colour, and without colour by marks and dashes.

use super::canvas::{Canvas, Colour, Point, Shape, Stroke};

/// Okabe and Ito's colours, which colour-blind readers can tell apart, without their yellow, which is too
/// pale on white.
const COLOURS: [Colour; 7] = [
    Colour(0, 114, 178),
    Colour(213, 94, 0),
    Colour(0, 158, 115),
    Colour(204, 121, 167),
    Colour(0, 0, 0),
    Colour(230, 159, 0),
    Colour(86, 180, 233),
];

/// Of lines, in turn.
const DASHES: [&[f64]; 5] = [&[], &[4.0, 1.6], &[1.2, 1.4], &[5.0, 1.5, 1.2, 1.5], &[8.0, 2.0]];

/// Corners of marks, in shares of their radius; none for a circle.
const MARKS: [&[Point]; 6] = [
    &[],
    &[(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
    &[(0.0, -1.15), (1.05, 0.8), (-1.05, 0.8)],
    &[(0.0, -1.25), (1.0, 0.0), (0.0, 1.25), (-1.0, 0.0)],
    &[(0.0, 1.15), (1.05, -0.8), (-1.05, -0.8)],
    &[
        (-0.4, -1.1),
        (0.4, -1.1),
        (0.4, -0.4),
        (1.1, -0.4),
        (1.1, 0.4),
        (0.4, 0.4),
        (0.4, 1.1),
        (-0.4, 1.1),
        (-0.4, 0.4),
        (-1.1, 0.4),
        (-1.1, -0.4),
        (-0.4, -0.4),
    ],
];

/// The look of one of many: two of the first 84 never have the same colour, mark and filling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    pub colour: Colour,
    dashes: &'static [f64],
    mark: usize,
    filled: bool,
}

impl Look {
    /// The look of number `place`.
    pub fn of(place: usize) -> Self {
        let (colour, round) = (place % COLOURS.len(), place / COLOURS.len());
        Look {
            colour: COLOURS[colour],
            dashes: DASHES[(colour + round) % DASHES.len()],
            mark: (colour + round) % MARKS.len(),
            filled: (colour + round / MARKS.len()).is_multiple_of(2),
        }
    }

    /// Its lines.
    pub fn stroke(self, width: f64) -> Stroke {
        Stroke { colour: self.colour, width, dashes: self.dashes }
    }

    /// Its mark at a place.
    pub fn mark(self, canvas: &mut Canvas, (x, y): Point, radius: f64) {
        let fill = Some(if self.filled { self.colour } else { Colour::WHITE });
        let stroke = Some(Stroke::solid(self.colour, 0.8));
        canvas.shapes.push(match MARKS[self.mark] {
            [] => Shape::Circle { centre: (x, y), radius, fill, stroke },
            corners => {
                let points = corners.iter().map(|(across, down)| (x + across * radius, y + down * radius));
                Shape::Area { points: points.collect(), fill, stroke }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_of_many_look_alike() {
        let looks: Vec<Look> = (0..80).map(Look::of).collect();
        for (place, look) in looks.iter().enumerate() {
            let same = |other: &Look| {
                (other.colour, other.mark, other.filled) == (look.colour, look.mark, look.filled)
            };
            assert!(!looks[..place].iter().any(same), "{place}");
        }
        // Without colour the first ones differ, too.
        assert!((1..6).all(|place| looks[place].mark != looks[place - 1].mark));
    }
}
