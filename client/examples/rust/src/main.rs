//! Calls a running attendant-server: cargo run -- [HOST:PORT]
use std::time::Duration;

use pb::encoder_service_client::EncoderServiceClient;
use pb::{AttendRequest, DataType, EncodeRequest, Tensor};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

mod pb {
    tonic::include_proto!("attendant.v1");
}

fn floats(shape: &[i64], values: &[f32]) -> Tensor {
    let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor { dtype: DataType::Float32.into(), shape: shape.to_vec(), data }
}

fn integers(shape: &[i64], values: &[i64]) -> Tensor {
    let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Tensor { dtype: DataType::Int64.into(), shape: shape.to_vec(), data }
}

/// The first `count` values of a row of a FLOAT32 tensor [..., width].
fn row_text(tensor: &Tensor, row: i64, count: usize) -> String {
    let width = *tensor.shape.last().expect("a shape");
    let values = tensor.data[(4 * row * width) as usize..].chunks_exact(4).take(count);
    let value = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("four bytes"));
    values.map(|bytes| format!("{:.4}", value(bytes))).collect::<Vec<_>>().join(" ")
}

/// The field that an error names: its details do, or else the beginning of its message.
fn field_of(status: &Status) -> String {
    let detail = status.get_details_bad_request();
    match detail.as_ref().and_then(|bad| bad.field_violations.first()) {
        Some(violation) => violation.field.clone(),
        None => status.message().split(':').next().unwrap_or_default().to_string(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or("localhost:8001".to_string());
    let mut client = EncoderServiceClient::connect(format!("http://{address}")).await?;

    // One sequence of three tokens. The mask keeps two; the third row is returned as zeros.
    let mut attend = AttendRequest {
        model: "worked-example".to_string(),
        hidden_states: Some(floats(&[1, 3, 4], &[1., 0., 1., 0., 0., 2., 0., 2., 1., 1., 1., 1.])),
        attention_mask: Some(integers(&[1, 3], &[1, 1, 0])),
        ..Default::default()
    };
    let attended = client.attend(attend.clone()).await?.into_inner().output.ok_or("no output")?;
    println!("Attend");
    for row in 0..3 {
        println!("  row {row}: {}", row_text(&attended, row, 3));
    }

    // Three sequences of unequal lengths, one after the other, without padding.
    let packed = EncodeRequest {
        model: "tiny".to_string(),
        token_ids: Some(integers(&[7], &[1, 2, 3, 4, 5, 6, 7])),
        lengths: vec![4, 1, 2],
        ..Default::default()
    };
    let encoded = client.encode(packed.clone()).await?.into_inner().hidden_states.ok_or("no hidden states")?;
    println!("Encode");
    let mut first = 0;
    for length in &packed.lengths {
        println!("  row {first} begins a sequence of {length}: {}", row_text(&encoded, first, 3));
        first += length;
    }

    // Texts, which the server tokenizes: a vector of each.
    let texts = EncodeRequest {
        model: "minilm".to_string(),
        texts: vec!["hello world".to_string(), "good morning".to_string()],
        return_pooled: true,
        omit_hidden_states: true,
        ..Default::default()
    };
    let embedded = client.encode(texts.clone()).await?.into_inner();
    let vectors = embedded.pooled.ok_or("no vectors")?;
    println!("Texts");
    for (row, (text, tokens)) in texts.texts.iter().zip(&embedded.lengths).enumerate() {
        println!("  {text}, {tokens} tokens: {}", row_text(&vectors, row as i64, 3));
    }

    // The model has one layer, and this is not it.
    attend.layer = 7;
    if let Err(status) = client.attend(attend).await {
        println!("Error\n  code {}, field {}\n  {}", status.code() as i32, field_of(&status), status.message());
    }

    // A millisecond is too short for 8192 tokens. When tonic's own timer is first, the code is CANCELLED.
    let states = Some(floats(&[1, 8192, 4], &[0.; 32768]));
    let model = "worked-example".to_string();
    let mut hurried = Request::new(AttendRequest { model, hidden_states: states, ..Default::default() });
    hurried.set_timeout(Duration::from_millis(1));
    if let Err(status) = client.attend(hurried).await {
        if matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled) {
            println!("Deadline\n  exceeded");
        }
    }
    Ok(())
}
