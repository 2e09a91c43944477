"""grpc-health-probe, as Kubernetes ran it before it could probe by itself."""
import common
import programs

UNKNOWN_SERVICE = 3  # its exit code when the call fails


def check(checks, options, expected):
    for service in ("", "minilm", "inference.GRPCInferenceService"):
        done = programs.run(programs.go_program("grpc-health-probe"), "-addr", options.grpc, "-service", service)
        checks.that(f'service "{service}": SERVING', done.returncode == 0 and "SERVING" in done.stdout + done.stderr, done.stderr)
    done = programs.run(programs.go_program("grpc-health-probe"), "-addr", options.grpc, "-service", "nobody")
    checks.that("unknown service: NotFound", done.returncode == UNKNOWN_SERVICE and "NotFound" in done.stderr, done.stderr)


if __name__ == "__main__":
    common.run(lambda: programs.go_version("grpc-health-probe"), check)
