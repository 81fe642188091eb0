// The Transport type: sends one call of any CSI service. gRPC (connect.ts) and the simulator implement it; instrument.ts
// and redact.ts wrap it. driver.ts adds the types of the services.
import type { DescMethod, Message } from '@bufbuild/protobuf'

export interface CallOptions {
  /**
   * After this time the call fails with DEADLINE_EXCEEDED, but the driver may still complete it. Default: the timeout of the
   * connection.
   */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** Sends one call of any service to a driver. */
export type Transport = (method: DescMethod, request: Message, options: CallOptions) => Promise<Message>

/** Returns the gRPC path, such as `/csi.v1.Controller/CreateVolume`. */
export const pathOf = (method: DescMethod) => `/${method.parent.typeName}/${method.name}`
