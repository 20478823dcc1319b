//! What is set before loading reaches the field of the C source that bears its name: the object's own
//! description of its types (BTF) says where each field is.

use std::mem::MaybeUninit;
use std::time::Duration;

use libbpf_rs::btf::types::{DataSec, MemberAttr, Struct, Var};
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::{AsRawLibbpf, Btf, HasSize, OpenObject, ReferencesType};

use super::objects::router::types::router_place;
use super::{endpoint, router};
use crate::settings::Threshold;

/// The `u32` that a field of the constant `variable` holds.
fn setting(object: &OpenObject, variable: &str, field: &str) -> u32 {
    // SAFETY: the object lives as long as the reference.
    let btf = Btf::from_bpf_object(unsafe { object.as_libbpf_object().as_ref() }).unwrap().unwrap();
    let section: DataSec<'_> = btf.type_by_name(".rodata").unwrap();
    let of = |name: Option<&std::ffi::OsStr>, wanted: &str| name.is_some_and(|name| name == wanted);
    let place =
        section.iter().find(|place| of(btf.type_by_id::<Var<'_>>(place.ty).unwrap().name(), variable));
    let place = place.unwrap_or_else(|| panic!("there is no constant {variable}"));
    let variable: Var<'_> = btf.type_by_id(place.ty).unwrap();
    let structure = Struct::try_from(variable.referenced_type().skip_mods_and_typedefs()).unwrap();
    let member = structure.iter().find(|member| of(member.name, field));
    let member = member.unwrap_or_else(|| panic!("there is no field {field}"));
    let MemberAttr::Normal { offset } = member.attr else { panic!("{field} is a bit field") };
    let at = (place.offset + offset / 8) as usize;
    assert!(at + 4 <= section.size());
    let rodata = object.maps().find(|map| map.name().to_string_lossy().ends_with(".rodata")).unwrap();
    u32::from_ne_bytes(rodata.initial_value().unwrap()[at..at + 4].try_into().unwrap())
}

#[test]
fn delay_controls_settings_reach_the_fields_of_their_names() {
    let mut place = MaybeUninit::uninit();
    let threshold = Threshold::Time(Duration::from_millis(20));
    let opened = endpoint::open_wdc(&mut place, threshold, Some(150)).unwrap();
    let of = |field| setting(opened.open_object(), "settings", field);
    assert_eq!(["threshold_us", "share_ppm", "pacing_percent"].map(of), [20_000, 0, 150]);
}

#[test]
fn abcs_settings_reach_the_fields_of_their_names() {
    let mut place = MaybeUninit::uninit();
    let opened = endpoint::open_abc(&mut place, true, Some(130)).unwrap();
    let of = |field| setting(opened.open_object(), "settings", field);
    // FEEDBACK_OPTION
    assert_eq!(["feedback", "pacing_percent", "cubic_as_linux"].map(of), [2, 130, 1]);
}

#[test]
fn the_link_header_reaches_the_mark() {
    let mut place = MaybeUninit::uninit();
    let opened = endpoint::open_stamp(&mut place, 7).unwrap();
    assert_eq!(setting(opened.open_object(), "settings", "link_header"), 7);
}

#[test]
fn the_routers_devices_reach_the_fields_of_their_names() {
    let mut place = MaybeUninit::uninit();
    let devices = router_place { shaper: 3, link_header: 7, class_abc: 11, class_other: 13, law: 1 };
    let opened = router::open(&mut place, devices).unwrap();
    let of = |field| setting(opened.open_object(), "place", field);
    let fields = ["shaper", "link_header", "class_abc", "class_other", "law"];
    assert_eq!(fields.map(of), [3, 7, 11, 13, 1]);
}
