// Serves a CSI driver on a Unix socket; connect.ts is the client. Services and methods without a handler return
// UNIMPLEMENTED. A stale socket is replaced. A socket on which another process listens is an error.
import { create, type DescMethod, type DescService, fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import {
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { ServiceHandlers } from './driver.ts'
import { type CsiCode, CsiError } from './errors.ts'
import { Controller, Identity, Node } from './gen/csi_pb.js'
import type { CallObserver } from './metrics.ts'
import { findSecrets, redactLazily } from './redact.ts'
import { removeStaleSocket } from './remove-stale-socket.ts'
import { createSecretMask, type SecretMask } from './secret-mask.ts'
import { parseSocketPath } from './socket-path.ts'
import { pathOf } from './transport.ts'

export interface ServeOptions {
  /** The socket as `unix:///run/x/csi.sock` or as a path. Its directory must exist. */
  readonly endpoint: string
  readonly identity: ServiceHandlers<typeof Identity>
  readonly controller?: Partial<ServiceHandlers<typeof Controller>>
  readonly node?: Partial<ServiceHandlers<typeof Node>>
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: CallObserver
}

export interface ServedDriver {
  /** Stops accepting calls, waits for those in flight for a limited time, and removes the socket. */
  stop(): Promise<void>
}

const STOP_GRACE_MS = 5_000 // afterwards, calls in flight are aborted
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024

export async function serveDriver(options: ServeOptions): Promise<ServedDriver> {
  const { endpoint, identity, controller, node, clock, log } = options
  const path = parseSocketPath(endpoint)
  await removeStaleSocket(path)

  const driverName = await readDriverName(identity)
  const secretMask = createSecretMask()
  const server = new Server({
    'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
    'grpc.max_send_message_length': MESSAGE_BYTES_MAX,
  })
  const serve = (service: DescService, handlers: object | undefined) => {
    if (!handlers) return
    server.addService(
      createServiceDefinition(service),
      createServiceImplementation(service, handlers as AnyHandlers, driverName, { ...options, secretMask }),
    )
  }
  serve(Identity, identity)
  serve(Controller, controller)
  serve(Node, node)
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) =>
      error ? reject(listenError(path, error.message)) : resolve(),
    ),
  )
  log.info({ endpoint: path, driver: driverName }, 'serving the CSI driver')

  return {
    stop: () =>
      new Promise((resolve) => {
        const cancelForcedStop = clock.after(STOP_GRACE_MS, () => {
          server.forceShutdown()
          resolve()
        })
        server.tryShutdown(() => {
          cancelForcedStop()
          resolve()
        })
      }),
  }
}

type AnyHandlers = Record<
  string,
  ((request: Message, call: { signal: AbortSignal }) => Promise<Record<string, unknown>>) | undefined
>

function createServiceDefinition(service: DescService): ServiceDefinition {
  return Object.fromEntries(
    service.methods.map((method) => [
      method.localName,
      {
        path: pathOf(method),
        requestStream: false,
        responseStream: false,
        requestSerialize: (message: Message) => Buffer.from(toBinary(method.input, message)),
        requestDeserialize: (bytes: Buffer) => fromBinary(method.input, bytes),
        responseSerialize: (message: Message) => Buffer.from(toBinary(method.output, message)),
        responseDeserialize: (bytes: Buffer) => fromBinary(method.output, bytes),
      },
    ]),
  )
}

function createServiceImplementation(
  service: DescService,
  handlers: AnyHandlers,
  driverName: string,
  { clock, log, metrics, secretMask }: ServeOptions & { readonly secretMask: SecretMask },
): UntypedServiceImplementation {
  const handler =
    (method: DescMethod): handleUnaryCall<Message, Message> =>
    (call, respond) => {
      const startMs = clock.monotonicMs()
      const cancellation = new AbortController()
      call.on('cancelled', () => cancellation.abort())
      const recordCall = (code: CsiCode) =>
        metrics?.observeCall({
          driverName,
          method: pathOf(method),
          code,
          seconds: (clock.monotonicMs() - startMs) / 1_000,
        })
      const handleRequest = async () => {
        const handle = handlers[method.localName]
        if (!handle) throw new CsiError('UNIMPLEMENTED', `${driverName} does not implement ${method.name}`)
        return create(method.output, await handle.call(handlers, call.request, { signal: cancellation.signal }))
      }
      secretMask.add(findSecrets(method.input, call.request))
      log.debug(
        { method: pathOf(method), request: redactLazily(method.input, call.request, secretMask) },
        'serving a CSI call',
      )
      handleRequest().then(
        (response) => {
          recordCall('OK')
          respond(null, response)
        },
        (reason: unknown) => {
          const error = reason instanceof CsiError ? reason : logUnexpectedError(method, reason, { log, secretMask })
          const details = secretMask.mask(error.message)
          recordCall(error.codeName)
          log.debug({ method: pathOf(method), code: error.codeName, error: details }, 'the CSI call failed')
          respond({ code: error.code, details })
        },
      )
    }
  return Object.fromEntries(service.methods.map((method) => [method.localName, handler(method)]))
}

/** Logs the stack of an unexpected error and returns INTERNAL without details. */
function logUnexpectedError(
  method: DescMethod,
  reason: unknown,
  { log, secretMask }: { readonly log: Logger; readonly secretMask: SecretMask },
): CsiError {
  const stack = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason)
  log.error({ method: pathOf(method), error: secretMask.mask(stack) }, 'the CSI call failed with an unexpected error')
  return new CsiError('INTERNAL', `${method.name} failed with an unexpected error; see the log of the driver`)
}

async function readDriverName(identity: ServiceHandlers<typeof Identity>): Promise<string> {
  const info = await identity.getPluginInfo(create(Identity.method.getPluginInfo.input), {
    signal: new AbortController().signal,
  })
  return info.name ?? ''
}

const listenError = (path: string, message: string) => new Error(`Cannot serve a CSI driver at ${path}: ${message}.`)
