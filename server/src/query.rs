//! The part of an address after the question mark: strict, so that a misspelt key is not ignored in silence.

use std::borrow::Cow;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::Uri;
use utoipa::IntoParams;

use crate::error::ApiError;

/// Entries of a list where a request does not say.
const DEFAULT_LIMIT: usize = 50;
/// No number of an entry is higher, in the words of OpenAPI's `int32`.
const MAX_NUMBER: usize = i32::MAX as usize;
/// No list is longer.
const MAX_LIMIT: usize = 1000;

/// Which model is meant.
#[derive(Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct ModelQuery {
    /// The model's name; the first model without it.
    #[param(value_type = String, required = false)]
    pub(crate) model: Option<String>,
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
    /// The model's name; the first model without it.
    #[param(value_type = String, required = false)]
    pub(crate) model: Option<String>,
}

impl ModelQuery {
    pub(crate) fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let mut query = ModelQuery::default();
        for (key, value) in pairs(uri)? {
            match &key[..] {
                "model" => query.model = Some(value.into()),
                _ => return Err(unknown(&key, "model")),
            }
        }
        Ok(query)
    }
}

impl ListQuery {
    pub(crate) fn parse(uri: &Uri) -> Result<Self, ApiError> {
        let mut list = ListQuery {
            query: String::new(),
            limit: DEFAULT_LIMIT,
            offset: 0,
            model: None,
        };
        for (key, value) in pairs(uri)? {
            match &key[..] {
                "query" => list.query = value.into(),
                "limit" => list.limit = number("limit", &value, 1, MAX_LIMIT)?,
                "offset" => list.offset = number("offset", &value, 0, MAX_NUMBER)?,
                "model" => list.model = Some(value.into()),
                _ => return Err(unknown(&key, "query, limit, offset or model")),
            }
        }
        Ok(list)
    }
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

fn pairs(uri: &Uri) -> Result<Vec<Pair<'_>>, ApiError> {
    let query = uri.query().unwrap_or("").as_bytes();
    let pairs: Vec<_> = form_urlencoded::parse(query).collect();
    for (place, (key, _)) in pairs.iter().enumerate() {
        if pairs[..place].iter().any(|(earlier, _)| earlier == key) {
            let key: String = key.chars().take(40).collect();
            return Err(ApiError::BadValue(format!("{key:?} is given twice")));
        }
    }
    Ok(pairs)
}

fn unknown(key: &str, expected: &str) -> ApiError {
    let key: String = key.chars().take(40).collect();
    ApiError::BadValue(format!("unknown key {key:?}, expected {expected}"))
}
