//! The sections of the README that this command writes: each stands between two comments that name it.

use std::fs;
use std::io;
use std::path::Path;

/// Writes `text` into the section of that name.
pub(crate) fn write(name: &str, text: &str) -> io::Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let wrong = |what: String| io::Error::other(format!("{}: {what}", path.display()));
    let page = fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
    let page = replaced(&page, name, text).map_err(wrong)?;
    fs::write(&path, page).map_err(|error| wrong(error.to_string()))
}

fn replaced(page: &str, name: &str, text: &str) -> Result<String, String> {
    let (begin, end) = (
        format!("<!-- {name}: written -->\n"),
        format!("<!-- {name}: end -->"),
    );
    let missing = || {
        format!(
            "no section `{name}`: put `{}` and `{end}` around it",
            begin.trim_end()
        )
    };
    let (before, rest) = page.split_once(&begin).ok_or_else(missing)?;
    let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
    Ok(format!(
        "{before}{begin}\n{}\n\n{end}{after}",
        text.trim_end()
    ))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_section_is_replaced_and_the_rest_stays() {
        let page = "a\n<!-- x: written -->\nold\n<!-- x: end -->\nb\n";
        let expected = "a\n<!-- x: written -->\n\nnew\n\n<!-- x: end -->\nb\n";
        assert_eq!(replaced(page, "x", "new\n").unwrap(), expected);
        assert_eq!(replaced(expected, "x", "new\n").unwrap(), expected);
        assert!(
            replaced(page, "y", "new")
                .unwrap_err()
                .contains("no section `y`")
        );
    }
}
