//! The examples of the description are requests that are answered, and answers of that shape.

use serde_json::Value;

use crate::running::Running;

#[test]
fn the_examples_of_the_interface_are_requests_and_answers_of_it() {
    let running = Running::with(|options| {
        options.models[0].name = "default".into();
        options.learn_key = Some("staple".into());
    });
    let mut client = running.client();
    let description = client.get("/openapi.json").json();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let mut address = path.clone();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                let example = &parameter["example"];
                let text = example.as_str().map_or(example.to_string(), str::to_owned);
                address = address.replace(&format!("{{{name}}}"), &text);
            }
            let contents = operation["requestBody"]["content"].as_object();
            let (head, body) = match contents.and_then(|contents| contents.iter().next()) {
                Some((kind, content)) if kind == "application/json" => {
                    // With labels of this model.
                    let body = content["example"].to_string();
                    let body = body.replace("libpng16-16", "a apple");
                    (kind.clone(), body.replace("zlib1g", "a pear"))
                }
                Some((kind, content)) => {
                    let text = content["example"]["text"].as_str().unwrap();
                    (kind.clone(), format!("text={}", text.replace(' ', "+")))
                }
                None => Default::default(),
            };
            let key = "authorization: Bearer staple\r\n".to_owned();
            let head = if body.is_empty() {
                key
            } else {
                format!("{key}content-type: {head}\r\n")
            };
            let reply = client.send(&method.to_uppercase(), &address, &head, body.as_bytes());
            assert_eq!(reply.status, 200, "{method} {address}: {}", reply.text());
            let answer = &operation["responses"]["200"]["content"]["application/json"];
            if path != "/metrics" {
                let example = answer.get("example");
                let example = example.unwrap_or_else(|| panic!("{path} has no example"));
                check_shape(example, &reply.json(), path);
            }
        }
    }
}

fn check_shape(example: &Value, found: &Value, place: &str) {
    match (example, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (key, value) in expected {
                let found = found.get(key);
                let found = found.unwrap_or_else(|| panic!("{place}: there is no {key}"));
                check_shape(value, found, &format!("{place}.{key}"));
            }
        }
        (Value::Array(expected), Value::Array(found)) => {
            for (expected, found) in expected.iter().zip(found) {
                check_shape(expected, found, place);
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        _ => {
            let kind = |value: &Value| std::mem::discriminant(value);
            assert_eq!(kind(example), kind(found), "{place}: {example} {found}");
        }
    }
}
