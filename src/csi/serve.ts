// A driver served on a unix socket: the other end of connect.ts. Services and methods that are not given answer
// UNIMPLEMENTED. A socket that another driver answers on is left alone; one that nobody answers on is replaced.
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
import { pathOf, type ServiceHandlers } from './driver.ts'
import { type CsiCode, CsiError } from './errors.ts'
import { Controller, Identity, Node } from './gen/csi_pb.js'
import type { CallObserver } from './metrics.ts'
import { redactLazily, redactText } from './redact.ts'
import { removeStaleSocket } from './remove-stale-socket.ts'
import { socketPathOf } from './socket-path.ts'

export interface ServeOptions {
  /** `unix:///run/x/csi.sock`, or just the path. Its directory must be there. */
  readonly endpoint: string
  readonly identity: ServiceHandlers<typeof Identity>
  readonly controller?: Partial<ServiceHandlers<typeof Controller>>
  readonly node?: Partial<ServiceHandlers<typeof Node>>
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: CallObserver
}

export interface ServedDriver {
  /** Takes no more calls, gives those under way some time to end, and removes the socket. */
  stop(): Promise<void>
}

const STOP_GRACE_MS = 5_000 // then the calls under way are cut off; their callers see UNAVAILABLE
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024

export async function serveDriver(options: ServeOptions): Promise<ServedDriver> {
  const { endpoint, identity, controller, node, clock, log } = options
  const path = socketPathOf(endpoint)
  await removeStaleSocket(path)

  const driverName = await nameOf(identity)
  const server = new Server({
    'grpc.max_receive_message_length': MESSAGE_BYTES_MAX,
    'grpc.max_send_message_length': MESSAGE_BYTES_MAX,
  })
  const serve = (service: DescService, callee: object | undefined) => {
    if (callee) server.addService(definitionOf(service), handlersOf(service, callee as AnyCallee, driverName, options))
  }
  serve(Identity, identity)
  serve(Controller, controller)
  serve(Node, node)
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) =>
      error ? reject(cannotListen(path, error.message)) : resolve(),
    ),
  )
  log.info({ endpoint: path, driver: driverName }, 'serving a CSI driver')

  return {
    stop: () =>
      new Promise((resolve) => {
        const cancelForce = clock.after(STOP_GRACE_MS, () => {
          server.forceShutdown()
          resolve()
        })
        server.tryShutdown(() => {
          cancelForce()
          resolve()
        })
      }),
  }
}

type AnyCallee = Record<
  string,
  ((request: Message, call: { signal: AbortSignal }) => Promise<Record<string, unknown>>) | undefined
>

function definitionOf(service: DescService): ServiceDefinition {
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

function handlersOf(
  service: DescService,
  callee: AnyCallee,
  driverName: string,
  { clock, log, metrics }: ServeOptions,
): UntypedServiceImplementation {
  const handler =
    (method: DescMethod): handleUnaryCall<Message, Message> =>
    (call, answer) => {
      const startedMs = clock.monotonicMs()
      const gone = new AbortController()
      call.on('cancelled', () => gone.abort())
      const done = (code: CsiCode) =>
        metrics?.called({
          driverName,
          method: pathOf(method),
          code,
          seconds: (clock.monotonicMs() - startedMs) / 1_000,
        })
      const work = async () => {
        const act = callee[method.localName]
        if (!act) throw new CsiError('UNIMPLEMENTED', `${driverName} does not offer ${method.name}`)
        return create(method.output, await act.call(callee, call.request, { signal: gone.signal }))
      }
      log.debug({ method: pathOf(method), request: redactLazily(method.input, call.request) }, 'called')
      work().then(
        (reply) => {
          done('OK')
          answer(null, reply)
        },
        (thrown: unknown) => {
          const error = thrown instanceof CsiError ? thrown : unexpected(method, call.request, thrown, log)
          const details = redactText(error.message, method.input, call.request)
          done(error.codeName)
          log.debug({ method: pathOf(method), code: error.codeName, error: details }, 'failed')
          answer({ code: error.code, details })
        },
      )
    }
  return Object.fromEntries(service.methods.map((method) => [method.localName, handler(method)]))
}

/** Ours is the mistake; the caller learns no more of it than that. */
function unexpected(method: DescMethod, request: Message, thrown: unknown, log: Logger): CsiError {
  const stack = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)
  log.error({ method: pathOf(method), error: redactText(stack, method.input, request) }, 'a call failed unexpectedly')
  return new CsiError('INTERNAL', `${method.name} failed unexpectedly; the driver's log says more`)
}

async function nameOf(identity: ServiceHandlers<typeof Identity>): Promise<string> {
  const info = await identity.getPluginInfo(create(Identity.method.getPluginInfo.input), {
    signal: new AbortController().signal,
  })
  return info.name ?? ''
}

const cannotListen = (path: string, because: string) => new Error(`Cannot serve a CSI driver at ${path}: ${because}.`)
