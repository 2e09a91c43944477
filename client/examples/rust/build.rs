fn main() -> std::io::Result<()> {
    tonic_prost_build::configure()
        .build_server(false)
        .compile_protos(&["attendant/v1/encoder_service.proto"], &["../../../proto"])
}
