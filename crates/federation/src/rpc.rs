//! The one gRPC method, `/partwise.Federation/Join`: a stream of frames in each direction. [`crate::frame`] defines
//! their content.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::http;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Request, Response, Status, Streaming};

use crate::deadline::{self, LAST_WORDS, Late, OPEN, PARTY_HEARTBEAT};
use crate::frame::MAX_FRAME;
use crate::io::{Alive, Closed};

const PATH: &str = "/partwise.Federation/Join";

/// The HTTP/2 window of one connection in each direction.
const WINDOW: u32 = 256 << 10;

#[derive(Clone, Copy, Default)]
struct RawBytes;

impl Codec for RawBytes {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        RawBytes
    }

    fn decoder(&mut self) -> Self {
        RawBytes
    }
}

impl Encoder for RawBytes {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for RawBytes {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

/// Frames to the other side.
pub type Outgoing = mpsc::Sender<Result<Bytes, Status>>;

/// Frames from the other side.
pub type Ingoing = Streaming<Bytes>;

/// Serves one connection: `join` is called for each stream that is opened on it. Returns the reason for a
/// rejection, if any.
pub async fn serve<F>(
    io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    heartbeat: Duration,
    join: F,
) -> Result<(), &'static str>
where
    F: Fn(Ingoing, Outgoing) + Clone + Send + Sync + 'static,
{
    let (opened, mut streams) = watch::channel(());
    let service = service_fn(move |request: http::Request<Incoming>| {
        opened.send_replace(());
        let join = join.clone();
        async move {
            if request.uri().path() != PATH {
                return Ok::<_, Infallible>(Status::unimplemented("there is one method, Join").into_http());
            }
            let mut grpc = tonic::server::Grpc::new(RawBytes).max_decoding_message_size(MAX_FRAME);
            Ok(grpc.streaming(JoinService(join), request).await)
        }
    });
    let (io, _) = Alive::new(io, deadline::silence(heartbeat));
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_concurrent_streams(1)
        .max_header_list_size(8 << 10)
        .max_send_buf_size(WINDOW as usize)
        .keep_alive_interval(heartbeat)
        .keep_alive_timeout(heartbeat)
        .serve_connection(TokioIo::new(io), service);
    tokio::pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        opened = OPEN.limit(streams.changed()) => match opened {
            Ok(_) => connection.await,
            Err(Late { .. }) => return Err("a connection that opens no stream"),
        },
    };
    match served {
        Err(error) if error.is_parse() => Err("a connection without HTTP/2"),
        // The other side may leave at any time.
        _ => Ok(()),
    }
}

struct JoinService<F>(F);

impl<F: Fn(Ingoing, Outgoing)> tonic::server::StreamingService<Bytes> for JoinService<F> {
    type Response = Bytes;
    type ResponseStream = ReceiverStream<Result<Bytes, Status>>;
    type Future = std::future::Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let (outgoing, frames) = mpsc::channel(2);
        (self.0)(request.into_inner(), outgoing);
        std::future::ready(Ok(Response::new(ReceiverStream::new(frames))))
    }
}

/// A connection that requests can be sent over.
struct HttpConnection(SendRequest<tonic::body::Body>);

impl tonic::client::GrpcService<tonic::body::Body> for HttpConnection {
    type ResponseBody = Incoming;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// A stream that a party has opened.
pub struct OpenedStream {
    pub ingoing: Ingoing,
    pub outgoing: mpsc::Sender<Bytes>,
    pub closed: Closed,
}

/// Opens a stream over a new connection.
pub async fn open(
    io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    host: &str,
) -> Result<OpenedStream, Status> {
    let (io, mut closed) = Alive::new(io, deadline::silence(PARTY_HEARTBEAT));
    let stream = stream(io, host);
    tokio::pin!(stream);
    // After the other side has closed the connection, no answer can be relied on: not every request is notified.
    let opening = async {
        tokio::select! {
            opened = &mut stream => opened,
            () = closed.wait() => match LAST_WORDS.limit(stream).await {
                Ok(opened) => opened,
                Err(Late { .. }) => Err(Status::unavailable("it was closed by the other side")),
            },
        }
    };
    let opened = OPEN.limit(opening).await;
    let (ingoing, outgoing) = opened.map_err(|late| Status::deadline_exceeded(late.to_string()))??;
    Ok(OpenedStream { ingoing, outgoing, closed })
}

async fn stream(
    io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    host: &str,
) -> Result<(Ingoing, mpsc::Sender<Bytes>), Status> {
    let failed = |error: hyper::Error| Status::from_error(Box::new(error));
    let (requests, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(WINDOW as usize)
        .keep_alive_interval(PARTY_HEARTBEAT)
        .keep_alive_timeout(PARTY_HEARTBEAT)
        .handshake(TokioIo::new(io))
        .await
        .map_err(failed)?;
    // Errors are reported by the stream.
    tokio::spawn(connection);
    let origin = http::Uri::builder().scheme("https").authority(host).path_and_query("/").build();
    let origin = origin.map_err(|error| Status::invalid_argument(error.to_string()))?;
    let mut grpc = tonic::client::Grpc::with_origin(HttpConnection(requests), origin)
        .max_decoding_message_size(MAX_FRAME);
    grpc.ready().await.map_err(failed)?;
    let (outgoing, frames) = mpsc::channel(2);
    let path = http::uri::PathAndQuery::from_static(PATH);
    let response = grpc.streaming(Request::new(ReceiverStream::new(frames)), path, RawBytes).await?;
    Ok((response.into_inner(), outgoing))
}
