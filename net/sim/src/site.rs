//! Where a fault strikes, as a script writes it: a link `n2-n0` or `clients-n1`, a node `n2`, or the whole `net`.

use sprag_paxos::Configuration;

use crate::fault::Class;
use crate::network::CLIENTS;

/// What the sites of a class are.
enum Sites {
    Links,
    Nodes,
    Net,
}

fn sites(class: Class) -> Sites {
    match class {
        Class::Loss | Class::Duplication | Class::Reordering | Class::DelayTail => Sites::Links,
        Class::Partition | Class::OneWay | Class::Flapping | Class::Blackout => Sites::Net,
        _ => Sites::Nodes,
    }
}

/// The name of `site`, of those of `class`.
pub(crate) fn name(class: Class, site: u16) -> String {
    match sites(class) {
        Sites::Links => format!("{}-{}", end(site / 16), end(site % 16)),
        Sites::Nodes => format!("n{site}"),
        Sites::Net => "net".to_owned(),
    }
}

fn end(number: u16) -> String {
    if usize::from(number) == CLIENTS {
        return "clients".to_owned();
    }
    format!("n{number}")
}

/// The site of that name, of those of `class`; else says what the names are.
pub(crate) fn read(class: Class, name: &str) -> Result<u16, String> {
    let (site, right) = match sites(class) {
        Sites::Links => {
            let ends = name.split_once('-');
            let site = ends.and_then(|(from, to)| Some(16 * read_end(from)? + read_end(to)?));
            (site, "a link, as `n2-n0` or `clients-n1`")
        }
        Sites::Nodes => (read_node(name), "a node, as `n2`"),
        Sites::Net => ((name == "net").then_some(0), "`net`"),
    };
    site.ok_or_else(|| format!("`{name}` is no place for {}: that is {right}", class.name()))
}

fn read_end(name: &str) -> Option<u16> {
    if name == "clients" {
        return Some(CLIENTS as u16);
    }
    read_node(name)
}

fn read_node(name: &str) -> Option<u16> {
    let node = name.strip_prefix('n')?.parse().ok()?;
    (usize::from(node) < Configuration::VOTERS_MAX).then_some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_site_is_read_as_it_is_written() {
        for class in Class::ALL {
            let count = match sites(*class) {
                Sites::Links => 256,
                Sites::Nodes => 15,
                Sites::Net => 1,
            };
            for site in 0..count {
                assert_eq!(read(*class, &name(*class, site)), Ok(site));
            }
        }
    }

    #[test]
    fn a_wrong_site_is_told_what_the_right_ones_are() {
        let cases = [
            (Class::Loss, "n2", "a link, as `n2-n0`"),
            (Class::Loss, "n2-n15", "a link, as `n2-n0`"),
            (Class::Crash, "2", "a node, as `n2`"),
            (Class::Crash, "n15", "a node, as `n2`"),
            (Class::Partition, "n0", "that is `net`"),
        ];
        for (class, name, part) in cases {
            let error = read(class, name).unwrap_err();
            assert!(error.contains(part), "{name}: {error}");
        }
    }
}
