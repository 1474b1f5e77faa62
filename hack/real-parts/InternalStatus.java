// Mends Google's Pub/Sub emulator, whose jar mixes two editions of gRPC: this class lacks there what the server calls when
// a client resets a stream. Without it the server never learns that the stream has ended, and goes on delivering to it.
package io.grpc;

public final class InternalStatus {
  public static final Metadata.Key<String> MESSAGE_KEY = Status.MESSAGE_KEY;
  public static final Metadata.Key<Status> CODE_KEY = Status.CODE_KEY;

  private InternalStatus() {}

  public static StatusRuntimeException asRuntimeExceptionWithoutStacktrace(Status status, Metadata trailers) {
    return asRuntimeException(status, trailers, false);
  }

  public static StatusRuntimeException asRuntimeException(Status status, Metadata trailers, boolean withStackTrace) {
    StatusRuntimeException exception = new StatusRuntimeException(status, trailers);
    if (!withStackTrace) {
      exception.setStackTrace(new StackTraceElement[0]);
    }
    return exception;
  }
}
