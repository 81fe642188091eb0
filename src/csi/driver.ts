// The CsiDriver interface: typed calls of the CSI services over any transport, gRPC (connect.ts) or simulated (sim/).
// Requests and responses are the generated messages; every failure is a CsiError.
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescService,
  type Message,
  type MessageInitShape,
  type MessageShape,
} from '@bufbuild/protobuf'
import { Controller, Identity, Node } from './gen/csi_pb.js'

export interface CsiDriver {
  readonly identity: ServiceClient<typeof Identity>
  readonly controller: ServiceClient<typeof Controller>
  readonly node: ServiceClient<typeof Node>
}

export interface CallOptions {
  /** Default: the connection's. After that the call fails with DEADLINE_EXCEEDED; the driver may still complete it. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** The client side of a service: one function per method. */
export type ServiceClient<S extends Service> = {
  readonly [M in keyof S['method']]: (
    request: MessageInitShape<Input<S, M>>,
    options?: CallOptions,
  ) => Promise<MessageShape<Output<S, M>>>
}

/** The server side of a service, as a driver implements it. A thrown CsiError is returned as is, other errors as INTERNAL. */
export type ServiceHandlers<S extends Service> = {
  readonly [M in keyof S['method']]: (
    request: MessageShape<Input<S, M>>,
    call: { readonly signal: AbortSignal },
  ) => Promise<MessageInitShape<Output<S, M>>>
}

/** Carries one call of any service to a driver. */
export type Transport = (method: DescMethod, request: Message, options: CallOptions) => Promise<Message>

/** A driver whose calls go through the transport. */
export function createCsiDriver(carry: Transport): CsiDriver {
  return {
    identity: createServiceClient(Identity, carry),
    controller: createServiceClient(Controller, carry),
    node: createServiceClient(Node, carry),
  }
}

/** Calls a method of the driver, given its descriptor. */
export function callDriver(driver: CsiDriver, method: DescMethod, request: Message, options: CallOptions) {
  const caller = { Identity: driver.identity, Controller: driver.controller, Node: driver.node }[method.parent.name]
  const call = (caller as Record<string, AnyCall> | undefined)?.[method.localName]
  if (!call) throw new Error(`${method.parent.typeName} is not a CSI service`)
  return call(request, options)
}

/** `/csi.v1.Controller/CreateVolume`. */
export const pathOf = (method: DescMethod) => `/${method.parent.typeName}/${method.name}`

type AnyCall = (request: Message, options?: CallOptions) => Promise<Message>
type Service = { readonly method: Record<string, DescMethod> }
type Input<S extends Service, M extends keyof S['method']> = S['method'][M]['input'] & DescMessage
type Output<S extends Service, M extends keyof S['method']> = S['method'][M]['output'] & DescMessage

function createServiceClient<S extends DescService & Service>(service: S, carry: Transport): ServiceClient<S> {
  const calls = service.methods.map((method): [string, AnyCall] => [
    method.localName,
    async (request, options = {}) => carry(method, create(method.input, request), options),
  ])
  return Object.fromEntries(calls) as unknown as ServiceClient<S>
}
