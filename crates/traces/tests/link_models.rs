//! The fit to a sample gives the recipe that comes with the program. Needs the samples: the folder `links` of
//! the one that BRAKELIGHT_SHARED names, `../shared` beside the workspace by default; without it, says what
//! it did not run.

use brakelight_testkit::skip;
use brakelight_traces::embedded::Embedded;
use brakelight_traces::fit::measured::{LINKS, fit_measured, read_link};

#[test]
fn the_recipes_of_todays_links_are_the_fits_to_their_samples() {
    for (name, sample, delay, kind) in LINKS {
        let Some(path) = skip::recording(&format!("links/{sample}")) else { continue };
        let folder = path.ancestors().nth(2).unwrap();
        let mut found = fit_measured(&read_link(folder, sample, *delay).unwrap(), *kind).unwrap();
        let recipe = Embedded::find(name).unwrap().recipe();
        found.about.clone_from(&recipe.about);
        assert_eq!(found, recipe, "{name} would now be\n{found}");
    }
}
