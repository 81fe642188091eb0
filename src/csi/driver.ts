// The CsiDriver interface: typed calls of the CSI services over any transport, gRPC (connect.ts) or simulated (sim/).
// Requests and responses are generated messages.
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
import { type InstrumentOptions, instrumentTransport } from './instrument.ts'
import { maskSecrets } from './redact.ts'
import { createSecretMask, type SecretMask } from './secret-mask.ts'
import type { CallOptions, Transport } from './transport.ts'

export interface CsiDriver {
  readonly identity: ServiceClient<typeof Identity>
  readonly controller: ServiceClient<typeof Controller>
  readonly node: ServiceClient<typeof Node>
}

/** A service's client: one function per method. */
type ServiceClient<S extends Service> = {
  readonly [M in keyof S['method']]: (
    request: MessageInitShape<Input<S, M>>,
    options?: CallOptions,
  ) => Promise<MessageShape<Output<S, M>>>
}

/** The implementation of a service by a driver. CsiErrors are returned with their code, other errors as INTERNAL. */
export type ServiceHandlers<S extends Service> = {
  readonly [M in keyof S['method']]: (
    request: MessageShape<Input<S, M>>,
    call: { readonly signal: AbortSignal },
  ) => Promise<MessageInitShape<Output<S, M>>>
}

interface CsiDriverOptions {
  /** Masks the secrets of earlier calls. Default: a mask that contains only the secrets sent by this client. */
  readonly secretMask?: SecretMask
  /** Where calls are logged and measured. Default: nowhere. */
  readonly instruments?: InstrumentOptions
}

/** Creates a driver that sends its calls over the transport and masks secrets in responses, errors and logs. */
export function createCsiDriver(send: Transport, options: CsiDriverOptions = {}): CsiDriver {
  const { secretMask = createSecretMask(), instruments } = options
  const transport = maskSecrets(send, secretMask)
  return createServiceClients(instruments ? instrumentTransport(transport, { ...instruments, secretMask }) : transport)
}

/** Creates a driver whose transport already masks secrets. */
export function createServiceClients(send: Transport): CsiDriver {
  return {
    identity: createServiceClient(Identity, send),
    controller: createServiceClient(Controller, send),
    node: createServiceClient(Node, send),
  }
}

/** Calls the method of the driver with this descriptor. */
export function callDriver(driver: CsiDriver, method: DescMethod, request: Message, options: CallOptions) {
  const caller = { Identity: driver.identity, Controller: driver.controller, Node: driver.node }[method.parent.name]
  const call = (caller as Record<string, AnyCall> | undefined)?.[method.localName]
  if (!call) throw new Error(`${method.parent.typeName} is not a CSI service`)
  return call(request, options)
}

type AnyCall = (request: Message, options?: CallOptions) => Promise<Message>
type Service = { readonly method: Record<string, DescMethod> }
type Input<S extends Service, M extends keyof S['method']> = S['method'][M]['input'] & DescMessage
type Output<S extends Service, M extends keyof S['method']> = S['method'][M]['output'] & DescMessage

function createServiceClient<S extends DescService & Service>(service: S, send: Transport): ServiceClient<S> {
  const calls = service.methods.map((method): [string, AnyCall] => [
    method.localName,
    async (request, options = {}) => send(method, create(method.input, request), options),
  ])
  return Object.fromEntries(calls) as unknown as ServiceClient<S>
}
