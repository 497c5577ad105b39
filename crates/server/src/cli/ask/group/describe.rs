//! `semel group describe`: members, what each has, and how far the group is behind.

use clap::Args;
use serde_json::{Value, json};

use super::lag::{Range, count};
use crate::{
    cli::ask::{AdminAddress, AskError, Bootstrap, Said, admin, kafka::Kafka, one_broker, table},
    units,
};

/// Show members, what each has, and how far the group is behind.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  semel group describe orders
  semel group describe orders --no-count    without reading the topics
  semel group describe orders --json

RECORDS are those that a reader of committed records still gets: markers and aborted records never count. They are read
to be counted, so a long lag takes time. OFFSETS is what lies between the committed offset and the end of the log,
markers, aborted and undecided records included, as Kafka's tool has it.
It asks the broker's admin endpoint, and Kafka's protocol (Fetch) for the count.

Exit status: 0 done, 1 failed, 2 wrong usage, 3 no such group, 4 nobody answers at the address.")]
pub struct Describe {
    /// The group.
    #[arg(value_name = "GROUP", value_parser = super::name)]
    group: String,
    /// Do not read the topics to count records.
    #[arg(long)]
    no_count: bool,
    #[command(flatten)]
    bootstrap: Bootstrap,
    #[command(flatten)]
    admin: AdminAddress,
    /// Machine-readable output.
    #[arg(long)]
    pub json: bool,
}

/// Asks.
pub fn ask(describe: &Describe) -> Result<Said, AskError> {
    let path = format!("/v1/groups/{}", admin::encode(&describe.group));
    let mut kafka =
        if describe.no_count { None } else { Some(one_broker(&describe.bootstrap, &describe.admin)?) };
    let mut answer = admin::get(&describe.admin.admin, &path)?;
    let members = list(&answer["members"]).to_vec();
    let mut offsets = list(&answer["offsets"]).to_vec();
    for offset in &mut offsets {
        let end = offset["high_watermark"].as_i64();
        let counter = kafka.as_mut().filter(|_| end.is_some());
        offset["lag_records"] = json!(counter.map(|kafka| records(kafka, offset)).transpose()?);
        offset["lag_offsets"] = json!(end.map(|end| end - committed(offset)));
        offset["member_id"] = owner(&members, offset).map_or(Value::Null, |one| one["member_id"].clone());
    }
    let mut lines = vec![format!("Group {:?}: {}", describe.group, stands(&answer))];
    lines.extend(members.iter().map(member));
    if !offsets.is_empty() {
        let head = ["PARTITION", "COMMITTED", "STABLE", "END", "RECORDS", "OFFSETS", "MEMBER"];
        lines.extend(table(&head, &offsets.iter().map(row).collect::<Vec<_>>()));
    }
    answer["offsets"] = json!(offsets);
    if let Some(fields) = answer.as_object_mut() {
        fields.remove("rebalances");
    }
    Ok(Said::new(answer, lines))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Where a group stands, in one line.
pub fn stands(answer: &Value) -> String {
    let text = |name: &str| answer[name].as_str().unwrap_or_default();
    let members = units::count(list(&answer["members"]).len() as u64, "member");
    format!("{} ({}), epoch {}, {members}", text("state"), text("type"), answer["epoch"])
}

fn committed(offset: &Value) -> i64 {
    offset["committed_offset"].as_i64().unwrap_or(0)
}

/// Records from the committed offset, or from the start of the log where that is gone, to the last stable offset.
fn records(kafka: &mut Kafka, offset: &Value) -> Result<u64, AskError> {
    let start = offset["log_start_offset"].as_i64().unwrap_or(0);
    let range = Range {
        topic: offset["topic"].as_str().unwrap_or_default(),
        partition: offset["partition"].as_i64().and_then(|index| i32::try_from(index).ok()).unwrap_or(0),
        from: committed(offset).max(start),
        end: offset["last_stable_offset"].as_i64().unwrap_or(0),
    };
    count(kafka, range)
}

fn owner<'a>(members: &'a [Value], offset: &Value) -> Option<&'a Value> {
    let same = |one: &&Value| {
        one["topic"].is_string() && one["topic"] == offset["topic"] && one["partition"] == offset["partition"]
    };
    members.iter().find(|member| list(&member["partitions"]).iter().any(|one| same(&one)))
}

/// A partition by name; `None` once its topic is deleted: then nobody knows either.
fn place(one: &Value) -> Option<String> {
    one["topic"].as_str().map(|topic| format!("{topic}-{}", one["partition"]))
}

/// What a member has, in words.
fn parts(partitions: &[Value]) -> String {
    let mut parts: Vec<_> = partitions.iter().filter_map(place).collect();
    let gone = partitions.len() - parts.len();
    if gone > 0 {
        parts.push(format!("{} of deleted topics", units::count(gone as u64, "partition")));
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
}

fn member(member: &Value) -> String {
    let text = |name: &str| member[name].as_str().unwrap_or_default();
    let parts = parts(list(&member["partitions"]));
    let fixed = member["instance_id"].as_str().map(|name| format!(", static {name:?}")).unwrap_or_default();
    let leads = if member["leader"] == true { ", leader" } else { "" };
    format!(
        "  {} (client {:?} at {}{fixed}{leads}) has {parts}",
        text("member_id"),
        text("client_id"),
        text("client_host")
    )
}

fn row(offset: &Value) -> Vec<String> {
    let number = |name: &str| offset[name].as_i64().map_or("-".to_owned(), |number| number.to_string());
    let pending = if offset["pending"] == true { " (in an open transaction)" } else { "" };
    vec![
        place(offset).unwrap_or_else(|| "of a deleted topic".to_owned()),
        format!("{}{pending}", number("committed_offset")),
        number("last_stable_offset"),
        number("high_watermark"),
        number("lag_records"),
        number("lag_offsets"),
        offset["member_id"].as_str().unwrap_or("-").to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_of_deleted_topics_are_counted_and_nobodys() {
        let gone = json!({ "topic": null, "partition": null });
        let here = json!({ "topic": "t", "partition": 3 });
        assert_eq!(parts(&[here.clone(), gone.clone(), gone.clone()]), "t-3, 2 partitions of deleted topics");
        assert_eq!(
            (parts(std::slice::from_ref(&gone)), parts(&[])),
            ("1 partition of deleted topics".into(), "nothing".into())
        );
        let members = [json!({ "member_id": "m", "partitions": [gone, here] })];
        assert!(owner(&members, &members[0]["partitions"][0]).is_none(), "null is not the same topic");
        assert!(owner(&members, &members[0]["partitions"][1]).is_some());
    }
}
