//! The pages of the locks to begin with, as rustdoc made them: each lists the methods of its lock,
//! and each link to a method leads to one.
//!
//! These locks are names of types of other crates. rustdoc keeps the methods of such a type in a
//! script, for the pages that the script names. A page that it does not name has no method, without
//! a warning. Nor does rustdoc look at what follows the `#` of a link.

use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use xtask::steps::Steps;
use xtask::workspace::Workspace;

const CRATE: &str = "ulocks";

/// The names to begin with, and the scripts of their types.
const PAGES: [(&str, &str); 9] = [
    ("Mutex", "lock_api/mutex/struct.Mutex.js"),
    ("RwLock", "lock_api/rwlock/struct.RwLock.js"),
    ("Condvar", "lock_api/condvar/struct.Condvar.js"),
    ("ReentrantMutex", "lock_api/remutex/struct.ReentrantMutex.js"),
    ("MutexGuard", "lock_api/mutex/struct.MutexGuard.js"),
    ("RwLockReadGuard", "lock_api/rwlock/struct.RwLockReadGuard.js"),
    ("RwLockWriteGuard", "lock_api/rwlock/struct.RwLockWriteGuard.js"),
    ("RwLockUpgradableReadGuard", "lock_api/rwlock/struct.RwLockUpgradableReadGuard.js"),
    ("Semaphore", "ulocks/fair/struct.SemaphoreWith.js"),
];

/// Another page with links to their methods.
const GUIDE: &str = "migrate/index.html";

/// Methods that a page need not name: what it says of the raw lock is enough.
const OF_THE_RAW_LOCK: [&str; 2] = ["from_raw", "into_inner_with_raw"];

/// Looks at the pages that `docs`, a command line, has made.
pub fn check(docs: &str, workspace: &Workspace, steps: &mut Steps) -> anyhow::Result<()> {
    let made = workspace.target().join("doc");
    Ok(steps.check("pages of the locks", docs, || {
        let (mut faults, mut methods, mut pages) = (Vec::new(), BTreeMap::new(), Vec::new());
        for (name, script) in PAGES {
            let page = read(&made.join(format!("{CRATE}/type.{name}.html")))?;
            let script = read(&made.join("type.impl").join(script))?;
            let of = methods_on(&page, &script)?;
            faults.extend(faults_of(name, &page, &of));
            methods.insert(name, of);
            pages.push((name, page));
        }
        pages.push((GUIDE, read(&made.join(CRATE).join(GUIDE))?));
        for (name, page) in pages {
            let lost = lost_links(&page, &methods);
            faults.extend(lost.iter().map(|link| format!("{CRATE}::{name}: no method at the link {link}")));
        }
        faults.iter().for_each(|fault| eprintln!("{fault}"));
        Ok(faults.is_empty())
    })?)
}

fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// What is missing on the page of a lock that has `methods`.
fn faults_of(name: &str, page: &str, methods: &[String]) -> Vec<String> {
    if methods.is_empty() {
        return vec![format!("the page of {CRATE}::{name} has no methods: is it an alias of an alias?")];
    }
    let prose = between(page, "<h2 id=\"methods\">", "<h2 ").next().unwrap_or("");
    let unnamed = methods.iter().filter(|method| {
        !OF_THE_RAW_LOCK.contains(&method.as_str()) && !prose.contains(&format!("<code>{method}</code>"))
    });
    unnamed.map(|method| format!("the page of {CRATE}::{name} does not name the method `{method}`")).collect()
}

/// The links of a page to methods that are not on the page of their type.
fn lost_links<'a>(page: &'a str, methods: &BTreeMap<&str, Vec<String>>) -> Vec<&'a str> {
    let links = between(page, "href=\"", "\"").filter(|link| {
        let Some((file, method)) = link.split_once(".html#method.") else { return false };
        let name = file.rsplit("type.").next().unwrap_or(file);
        file.contains("type.")
            && methods.get(name).is_some_and(|of| !of.iter().any(|one| one.as_str() == method))
    });
    links.collect()
}

/// The methods that a script has for a page.
fn methods_on(page: &str, script: &str) -> anyhow::Result<Vec<String>> {
    match between(page, "data-self-path=\"", "\"").next() {
        Some(path) => methods_of(path, script),
        None => Ok(Vec::new()),
    }
}

/// The methods that a script has for the page of the item `path`.
fn methods_of(path: &str, script: &str) -> anyhow::Result<Vec<String>> {
    let (_, json) = script.split_once("fromEntries(").context("not a script of implementations")?;
    let value = serde_json::Deserializer::from_str(json).into_iter::<Value>().next();
    let value = value.context("a script without implementations")??;
    let Some(crates) = value.as_array() else { bail!("a script of another form: {value:.80}") };
    let impls = crates.iter().filter(|of| of[0] == CRATE).filter_map(|of| of[1].as_array()).flatten();
    // An implementation is its text, its trait or 0, and the items on whose pages it stands.
    let inherent =
        impls.filter(|one| one[1] == 0 && one.as_array().is_some_and(|one| one[2..].contains(&path.into())));
    let texts = inherent.filter_map(|one| one[0].as_str());
    Ok(texts.flat_map(|text| between(text, "id=\"method.", "\"")).map(str::to_owned).collect())
}

/// What stands between each `begin` and the next `end`, or the end of the text.
fn between<'a>(text: &'a str, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(begin).skip(1).map(move |rest| rest.split(end).next().unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = r##"(function() {
        var type_impls = Object.fromEntries([
            ["other",[["<section id=\"method.other\"></section>",0,"ulocks::inner::Mutex"]]],
            ["ulocks",[
                ["<section id=\"method.lock\"></section><section id=\"method.raw\"></section>",0,"ulocks::inner::Mutex"],
                ["<section id=\"method.fmt\"></section>","Debug","ulocks::inner::Mutex"],
                ["<section id=\"method.read\"></section>",0,"ulocks::RwLock"]]]]);
        })()"##;

    fn page(path: &str, methods: &str) -> String {
        format!(
            "<p><code>raw</code></p><h2 id=\"methods\">Methods</h2>{methods}<h2 id=\"examples\"></h2>\
             <code>raw</code><script data-self-path=\"{path}\" async></script>"
        )
    }

    fn faults(page: &str) -> Vec<String> {
        faults_of("Mutex", page, &methods_on(page, SCRIPT).unwrap())
    }

    #[test]
    fn each_method_is_named_below_methods() {
        let all = page("ulocks::inner::Mutex", "<code>lock</code> <a href=\"\"><code>raw</code></a>");
        assert!(faults(&all).is_empty());
        let some = page("ulocks::inner::Mutex", "<code>lock</code>");
        assert_eq!(faults(&some), ["the page of ulocks::Mutex does not name the method `raw`"]);
    }

    #[test]
    fn a_page_that_the_script_does_not_name_has_no_methods() {
        for page in [page("ulocks::Mutex", "<code>lock</code> <code>raw</code>"), String::new()] {
            let faults = faults(&page);
            assert!(faults[0].starts_with("the page of ulocks::Mutex has no methods"), "{faults:?}");
        }
    }

    #[test]
    fn a_link_to_no_method_is_found() {
        let methods = BTreeMap::from([("Mutex", vec!["lock".to_owned()]), ("RwLock", Vec::new())]);
        let page = "<a href=\"type.Mutex.html#method.lock\"> <a href=\"../type.Mutex.html#method.lok\"> \
                    <a href=\"type.RwLock.html#method.lock\"> <a href=\"fair/struct.Mutex.html#method.x\"> \
                    <a href=\"type.Other.html#method.x\"> <a href=\"type.Mutex.html#methods\">";
        let lost = ["../type.Mutex.html#method.lok", "type.RwLock.html#method.lock"];
        assert_eq!(lost_links(page, &methods), lost);
    }

    #[test]
    fn a_script_of_another_form_is_an_error() {
        assert!(methods_of("ulocks::Mutex", "Object.fromEntries({})").is_err());
        assert!(methods_of("ulocks::Mutex", "").is_err());
    }
}
