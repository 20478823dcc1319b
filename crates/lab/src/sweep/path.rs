//! Keys of a scenario file with dots between: `duration`, `link.forward.queue`, `flow.*.rtt`.

use toml::{Table, Value};

/// Sets the key at `path` of `table` to `value`. In an array of tables the next part is the `name` of one of
/// them, or its place counted from 0, or `*` for all. Says why if the path leads nowhere.
pub(super) fn set(table: &mut Table, path: &str, value: &Value) -> Result<(), String> {
    let Some((first, rest)) = path.split_once('.') else {
        table.insert(path.to_string(), value.clone());
        return Ok(());
    };
    match table.get_mut(first) {
        Some(Value::Table(inner)) => set(inner, rest, value),
        Some(Value::Array(items)) => {
            let (which, rest) =
                rest.split_once('.').ok_or_else(|| format!("which key of `{first}.{rest}` is missing"))?;
            let names: Vec<String> = items.iter().map(name).collect();
            let mut found = false;
            for (place, item) in items.iter_mut().enumerate() {
                let is_it = which == "*" || names[place] == which || which.parse() == Ok(place);
                if let (true, Value::Table(inner)) = (is_it, item) {
                    found = true;
                    set(inner, rest, value)?;
                }
            }
            if found {
                Ok(())
            } else {
                Err(format!("no {first} is called `{which}`: there are {}", names.join(", ")))
            }
        }
        Some(_) => Err(format!("`{first}` has no keys")),
        None => {
            let mut inner = Table::new();
            set(&mut inner, rest, value)?;
            table.insert(first.to_string(), Value::Table(inner));
            Ok(())
        }
    }
}

fn name(item: &Value) -> String {
    item.get("name").and_then(Value::as_str).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        "duration = \"1s\"\n[[link]]\nname = \"a\"\n[[link]]\nname = \"b\"\n".parse().unwrap()
    }

    #[test]
    fn a_path_leads_by_name_by_place_and_to_all() {
        let mut given = table();
        for (path, value) in
            [("duration", "9s"), ("link.b.queue", "pie"), ("link.0.rate", "1Mbps"), ("link.*.x", "y")]
        {
            set(&mut given, path, &value.into()).unwrap();
        }
        assert_eq!(given["duration"].as_str(), Some("9s"));
        assert_eq!((given["link"][1]["queue"].as_str(), given["link"][0].get("queue")), (Some("pie"), None));
        assert_eq!(given["link"][0]["rate"].as_str(), Some("1Mbps"));
        assert!([0, 1].iter().all(|place: &usize| given["link"][*place]["x"].as_str() == Some("y")));
    }

    #[test]
    fn a_path_that_leads_nowhere_says_where_it_could_lead() {
        let error = set(&mut table(), "link.c.queue", &"pie".into()).unwrap_err();
        assert_eq!(error, "no link is called `c`: there are a, b");
        assert!(set(&mut table(), "duration.x", &1.into()).is_err());
        assert!(set(&mut table(), "link.a", &1.into()).is_err());
    }
}
