//! What people write of a map's points: lists with commas between.

/// Delta over tau: from far below the limits to far above.
pub const RATIOS: &str = "0.2,0.3,0.4,0.5,0.6,0.7,0.8,1,1.33,2";

/// The round trip over the loop delay of the router that tunes itself: from a quarter, where it takes 100 ms
/// for the longest that it can tell, to beyond the limits.
pub const LOOP_RATIOS: &str = "0.25,0.5,0.7,1,1.4,1.7,2,2.5,3,4,5";

/// Flows.
pub const FLOWS: &str = "1,4,8,16,32,64";

/// The most of either.
const MOST: usize = 100;

/// Reads a list of ratios.
///
/// # Errors
/// One that is not valid, with what is.
pub fn ratios(text: &str) -> Result<Vec<f64>, String> {
    list(text, "a number from 0.05 to 20", |item| {
        item.parse().ok().filter(|ratio: &f64| (0.05..=20.0).contains(ratio))
    })
}

/// Reads a list of factors by which a link may change.
///
/// # Errors
/// One that is not valid, with what is.
pub fn changes(text: &str) -> Result<Vec<f64>, String> {
    list(text, "a factor from 1.01 to 1000", |item| {
        item.parse().ok().filter(|change: &f64| (1.01..=1000.0).contains(change))
    })
}

/// Reads a list of numbers of flows.
///
/// # Errors
/// One that is not valid, with what is.
pub fn flows(text: &str) -> Result<Vec<u32>, String> {
    list(text, "a whole number of flows from 1 to 1000", |item| {
        item.parse().ok().filter(|flows: &u32| (1..=1000).contains(flows))
    })
}

/// Reads eta.
///
/// # Errors
/// It is not valid, with what is.
pub fn eta(text: &str) -> Result<f64, String> {
    const VALID: &str = "a number from 0.1 to 1";
    let eta = brakelight_core::units::parse_number(text).filter(|eta| (0.1..=1.0).contains(eta));
    eta.ok_or_else(|| format!("`{text}` is not {VALID}"))
}

fn list<T>(text: &str, valid: &str, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    let items: Vec<T> = text
        .split(',')
        .map(|item| read(item.trim()).ok_or_else(|| format!("`{}` is not {valid}", item.trim())))
        .collect::<Result<_, _>>()?;
    if items.len() > MOST { Err(format!("{} values: {MOST} are the most", items.len())) } else { Ok(items) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_say_which_item_is_wrong() {
        assert_eq!(flows("1, 4,8").unwrap(), [1, 4, 8]);
        assert_eq!(flows("1,x").unwrap_err(), "`x` is not a whole number of flows from 1 to 1000");
        assert_eq!(ratios("0.5,NaN").unwrap_err(), "`NaN` is not a number from 0.05 to 20");
        assert_eq!(changes("1").unwrap_err(), "`1` is not a factor from 1.01 to 1000");
        assert!(ratios("").is_err());
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(ratios(RATIOS).unwrap().len(), 10);
        assert_eq!(ratios(LOOP_RATIOS).unwrap().len(), 11);
        assert_eq!(flows(FLOWS).unwrap().len(), 6);
        assert_eq!(changes(super::super::waits::CHANGES).unwrap().len(), 6);
    }
}
