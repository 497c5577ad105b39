//! Asks a broker in Kafka's protocol, under the name `semel-cli`.

use semel_certify::{Client, ClientError};
use semel_types::ErrorCode;
use semel_wire::{
    Request, Text, WireCode,
    api::{
        api_versions::ApiVersionsRequest,
        metadata::{MetadataRequest, MetadataRequestTopic, MetadataTopic},
    },
};

use super::AskError;

/// How this command names itself to the broker: it stands in the fence log.
const CLIENT_ID: &str = "semel-cli";

/// Version in which topics are asked for.
const METADATA: i16 = 9;

/// A connection to a broker.
pub struct Kafka(Client);

impl Kafka {
    /// Connects and says who asks.
    ///
    /// # Errors
    /// Nobody answers, or what answers is no broker.
    pub fn connect(address: &str) -> Result<Self, AskError> {
        let unreachable = |error: ClientError| AskError::Unreachable {
            what: "a broker",
            address: address.to_owned(),
            reason: match error {
                ClientError::Io(error) => error.to_string(),
                ClientError::Decode(_) | ClientError::Encode(_) | ClientError::Correlation { .. } => {
                    format!("no broker listens there ({error})")
                }
            },
            flag: "--bootstrap",
        };
        let mut client = Client::connect(address).map_err(unreachable)?.named(CLIENT_ID);
        let hello = ApiVersionsRequest {
            client_software_name: CLIENT_ID.into(),
            client_software_version: env!("CARGO_PKG_VERSION").into(),
            ..Default::default()
        };
        client.call(&hello, 3).map_err(unreachable)?;
        Ok(Self(client))
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn call<Q: Request>(&mut self, request: &Q, version: i16) -> Result<Q::Response, AskError> {
        Ok(self.0.call(request, version)?)
    }

    /// The partitions of a topic, rising.
    ///
    /// # Errors
    /// There is no such topic.
    pub fn partitions(&mut self, topic: &str) -> Result<Vec<i32>, AskError> {
        let name = Some(Text::from(topic));
        let found = self.topics(Some(vec![MetadataRequestTopic { name, ..Default::default() }]))?;
        let found =
            found.first().ok_or_else(|| AskError::NotFound(format!("there is no topic {topic:?}")))?;
        check_topic(topic, found.error_code)?;
        Ok(numbers(found))
    }

    /// Every topic with its partitions.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn all_partitions(&mut self) -> Result<Vec<(String, Vec<i32>)>, AskError> {
        let topics = self.topics(None)?;
        let named = topics.iter().map(|topic| {
            let name = topic.name.as_ref().map(|name| name.as_str().to_owned());
            (name.unwrap_or_default(), numbers(topic))
        });
        Ok(named.collect())
    }

    /// The id of the broker's cluster, if it has one.
    ///
    /// # Errors
    /// The exchange failed.
    pub fn cluster_id(&mut self) -> Result<Option<String>, AskError> {
        let request = MetadataRequest { topics: Some(Vec::new()), ..Default::default() };
        let found = self.call(&request, METADATA)?.cluster_id;
        Ok(found.map(|id| id.as_str().to_owned()))
    }

    fn topics(&mut self, topics: Option<Vec<MetadataRequestTopic>>) -> Result<Vec<MetadataTopic>, AskError> {
        let request = MetadataRequest { topics, allow_auto_topic_creation: false, ..Default::default() };
        Ok(self.call(&request, METADATA)?.topics)
    }
}

fn numbers(topic: &MetadataTopic) -> Vec<i32> {
    let mut numbers: Vec<_> =
        topic.partitions.iter().map(|partition| partition.partition_index.get()).collect();
    numbers.sort_unstable();
    numbers
}

fn check_topic(topic: &str, code: WireCode) -> Result<(), AskError> {
    match code.known() {
        Some(ErrorCode::None) => Ok(()),
        Some(ErrorCode::UnknownTopicOrPartition | ErrorCode::InvalidTopicException) => {
            Err(AskError::NotFound(format!("there is no topic {topic:?}")))
        }
        Some(_) | None => Err(AskError::code("Metadata", code)),
    }
}
