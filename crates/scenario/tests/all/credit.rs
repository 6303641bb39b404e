//! Receiver credit in scenarios.

use pathweave_policy::CreditConfig;
use pathweave_policy::cc::Window;
use pathweave_scenario::{Changes, Loaded};

fn credit_of(scheme: &str) -> Result<Option<CreditConfig>, String> {
    let text = format!(
        "scheme = {scheme}\ntopology = {{ kind = \"star\", hosts = 4 }}\n\
         [[workload]]\nkind = \"incast\"\nsenders = 3\nsize = \"1MB\"\n"
    );
    let loaded =
        Loaded::parse(&text, "base.toml", ".", &Changes::default()).map_err(|why| why.to_string())?;
    let prepared = loaded.prepare().map_err(|why| why.to_string())?;
    Ok(prepared.spec.schemes[0].scheme.credit)
}

#[test]
fn any_scheme_can_have_credit_and_a_window_has_one_unit() {
    assert_eq!(credit_of(r#"{ base = "swift-rps", credit = {} }"#), Ok(Some(CreditConfig::rccc())));
    assert_eq!(credit_of(r#""swift-rps""#), Ok(None));
    let ndp = credit_of(r#"{ base = "ndp", credit.window = { packets = 15 } }"#);
    assert_eq!(ndp, Ok(Some(CreditConfig { window: Window::Packets(15), ..CreditConfig::ndp() })));
    let refused = credit_of(r#"{ base = "uet-rccc", credit.grant = 0 }"#).expect_err("a grant of nothing");
    assert!(refused.contains("credit.grant") && refused.contains("1 to 65535"), "{refused}");
}
