//! The part of an address after the question mark: strict, so that a misspelt key is not ignored in silence.

use std::borrow::Cow;
use std::cmp::Ordering;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::Uri;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use utoipa::{IntoParams, ToSchema};

use crate::error::ApiError;

/// Entries of a list where a request does not say.
const DEFAULT_LIMIT: usize = 50;
/// No number of an entry is higher, in the words of OpenAPI's `int32`.
const MAX_NUMBER: usize = i32::MAX as usize;
/// Entries of the longest list.
const MAX_LIMIT: usize = 1000;

/// Which model is meant.
#[derive(Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ModelQuery {
    /// The model's name; the first model without it.
    #[param(value_type = String, required = false)]
    pub(crate) model: Option<String>,
}

/// The order of a list.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Sort {
    /// By number.
    #[default]
    Id,
    /// By name, in any case; clusters by the name of their strongest label.
    Name,
    /// By training points of a label or labels of a cluster, the most first.
    Count,
}

/// An entry of a list, as [`Sort`] sees it.
pub(crate) struct Entry<'a> {
    pub(crate) id: usize,
    pub(crate) name: &'a str,
    pub(crate) count: usize,
}

impl Entry<'_> {
    fn compare(&self, other: &Self, sort: Sort) -> Ordering {
        let order = match sort {
            Sort::Id => Ordering::Equal,
            Sort::Name => lower(self.name).cmp(lower(other.name)),
            Sort::Count => other.count.cmp(&self.count),
        };
        order.then(self.id.cmp(&other.id))
    }
}

fn lower(name: &str) -> impl Iterator<Item = char> {
    name.chars().flat_map(char::to_lowercase)
}

/// Which part of a list is wanted.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Part of a label's name, in any case; everything without it.
    #[param(value_type = String, required = false)]
    pub(crate) query: String,
    /// Entries.
    #[param(value_type = u32, required = false, minimum = 1, maximum = 1000, default = 50)]
    pub(crate) limit: usize,
    /// Entries to pass over.
    #[param(value_type = u32, required = false, default = 0)]
    pub(crate) offset: usize,
    /// The order of the entries.
    #[param(inline, required = false)]
    pub(crate) sort: Sort,
    /// The model's name; the first model without it.
    #[param(value_type = String, required = false)]
    pub(crate) model: Option<String>,
}

impl ModelQuery {
    pub(crate) fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let [model] = values(pairs(uri), ["model"])?;
        Ok(ModelQuery {
            model: model.map(Cow::into_owned),
        })
    }
}

impl ListQuery {
    pub(crate) fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let known = ["query", "limit", "offset", "sort", "model"];
        let [query, limit, offset, sort, model] = values(pairs(uri), known)?;
        Ok(ListQuery {
            query: query.map_or_else(String::new, Cow::into_owned),
            limit: match limit {
                Some(limit) => number("limit", &limit, 1, MAX_LIMIT)?,
                None => DEFAULT_LIMIT,
            },
            offset: match offset {
                Some(offset) => number("offset", &offset, 0, MAX_NUMBER)?,
                None => 0,
            },
            sort: sort.map_or(Ok(Sort::default()), |sort| parse_sort(&sort))?,
            model: model.map(Cow::into_owned),
        })
    }

    /// The wanted ones of the entries that were found, in their order.
    pub(crate) fn page<'a>(&self, mut found: Vec<Entry<'a>>) -> impl Iterator<Item = Entry<'a>> {
        let compare = |a: &Entry<'_>, b: &Entry<'_>| a.compare(b, self.sort);
        let end = self.offset.saturating_add(self.limit);
        if end < found.len() {
            // The others need no order.
            found.select_nth_unstable_by(end, compare);
            found.truncate(end);
        }
        found.sort_unstable_by(compare);
        found.into_iter().skip(self.offset)
    }
}

fn parse_sort(text: &str) -> Result<Sort, ApiError> {
    let parsed = Sort::deserialize(text.into_deserializer());
    parsed.map_err(|error: serde::de::value::Error| ApiError::BadValue(format!("sort: {error}")))
}

/// The part of a path that an endpoint leaves open.
pub(crate) fn name(path: Result<Path<String>, PathRejection>) -> Result<String, ApiError> {
    let name = path.map(|Path(name)| name);
    name.map_err(|_| ApiError::BadValue("the address is not UTF-8".into()))
}

/// The number of a label or cluster in a path.
pub(crate) fn id(path: Result<Path<String>, PathRejection>) -> Result<u32, ApiError> {
    number("id", &name(path)?, 0, MAX_NUMBER).map(|id| id as u32)
}

fn number(name: &str, text: &str, min: usize, max: usize) -> Result<usize, ApiError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = text.parse().ok().filter(|_| is_plain);
    let in_range = parsed.filter(|number| (min..=max).contains(number));
    in_range.ok_or_else(|| {
        let found: String = text.chars().take(40).collect();
        ApiError::BadValue(format!(
            "{name}: found {found:?}, expected an integer from {min} to {max}"
        ))
    })
}

/// A key and its value.
type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Keys and values, decoded one by one as they are asked for.
fn pairs(uri: &Uri) -> impl Iterator<Item = Pair<'_>> {
    form_urlencoded::parse(uri.query().unwrap_or("").as_bytes())
}

/// The value of each known key, where it is given.
///
/// The first key that is unknown or given twice ends it, so no more pairs are read than one beyond the known keys.
fn values<'a, const N: usize>(
    pairs: impl Iterator<Item = Pair<'a>>,
    known: [&str; N],
) -> Result<[Option<Cow<'a, str>>; N], ApiError> {
    let mut values = [const { None }; N];
    for (key, value) in pairs {
        let place = known.iter().position(|known| *known == key);
        let place = place.ok_or_else(|| unknown(&key, &known))?;
        if values[place].replace(value).is_some() {
            return Err(ApiError::BadValue(format!("{key:?} is given twice")));
        }
    }
    Ok(values)
}

fn unknown(key: &str, known: &[&str]) -> ApiError {
    let key: String = key.chars().take(40).collect();
    let known = known.join(", ");
    ApiError::BadValue(format!("unknown key {key:?}, expected one of {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_to_their_keys_and_a_misspelt_or_repeated_key_is_named() {
        let parse = |query: &str| ListQuery::parse(&format!("/?{query}").parse().unwrap());
        let list = parse("query=a%20b&limit=7&offset=2&model=m").unwrap_or_else(|_| panic!());
        assert_eq!((&list.query[..], list.limit, list.offset), ("a b", 7, 2));
        assert_eq!(list.model.as_deref(), Some("m"));
        for (query, words) in [
            ("limit=1&limit=2", "\"limit\" is given twice"),
            (
                "qurey=a",
                "unknown key \"qurey\", expected one of query, limit",
            ),
            ("=", "unknown key \"\""),
            ("limit=0", "expected an integer from 1 to 1000"),
        ] {
            let Err(ApiError::BadValue(problem)) = parse(query) else {
                panic!("{query} was taken");
            };
            assert!(problem.contains(words), "{problem}");
        }
    }

    #[test]
    fn however_many_keys_a_query_has_only_the_first_few_are_read() {
        let known = ["a", "b", "c"];
        for keys in [
            ["x"; 4],
            ["a"; 4],
            ["a", "b", "c", "x"],
            ["a", "b", "c", "a"],
        ] {
            let mut n_read = 0;
            let pairs = keys.into_iter().chain(std::iter::repeat_n("z", 16_000));
            let pairs = pairs.inspect(|_| n_read += 1);
            let pairs = pairs.map(|key| (key.into(), "".into()));
            assert!(values(pairs, known).is_err());
            assert!(n_read <= known.len() + 1, "{keys:?}: {n_read}");
        }
    }
}
