// The two calls of the kubelet's plugin registration protocol. Each call uses its own connection, because calls are rare.
import { create, type DescMethod, fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import type { Clock } from '../../base/clock.ts'
import { type PluginInfo, Registration } from '../../csi/gen/registration_pb.js'
import { parseSocketPath } from '../../csi/socket-path.ts'

export interface PluginCalls {
  getInfo(socket: string): Promise<Pick<PluginInfo, 'type' | 'name' | 'endpoint' | 'supportedVersions'>>
  /** Calls NotifyRegistrationStatus, which reports success if there is no error. */
  notify(socket: string, error?: string): Promise<void>
}

const GET_INFO_TIMEOUT_MS = 1_000
const NOTIFY_TIMEOUT_MS = 5_000

export function createPluginCalls({ clock }: { readonly clock: Clock }): PluginCalls {
  function callPlugin(socket: string, method: DescMethod, request: Message, timeoutMs: number): Promise<Message> {
    return new Promise((resolve, reject) => {
      const client = new Client(`unix:${parseSocketPath(socket)}`, credentials.createInsecure(), {
        'grpc.default_authority': 'localhost',
        'grpc.use_local_subchannel_pool': 1,
        'grpc.enable_retries': 0,
      })
      const finish = (settle: () => void) => {
        cancelTimeout()
        settle()
        client.close()
      }
      const cancelTimeout = clock.after(timeoutMs, () => {
        finish(() => reject(new Error(`${method.name} at ${socket} took longer than ${timeoutMs / 1_000} s`)))
        call.cancel()
      })
      const call = client.makeUnaryRequest<Message, Message>(
        `/${method.parent.typeName}/${method.name}`,
        (message) => Buffer.from(toBinary(method.input, message)),
        (bytes) => fromBinary(method.output, bytes),
        request,
        new Metadata(),
        {},
        (error, reply) =>
          finish(() => (error ? reject(new Error(`${method.name} at ${socket}: ${error.details}`)) : resolve(reply!))),
      )
    })
  }

  return {
    async getInfo(socket) {
      const method = Registration.method.getInfo
      return (await callPlugin(socket, method, create(method.input), GET_INFO_TIMEOUT_MS)) as PluginInfo
    },
    async notify(socket, error) {
      const method = Registration.method.notifyRegistrationStatus
      const status = create(method.input, { pluginRegistered: error === undefined, error: error ?? '' })
      await callPlugin(socket, method, status, NOTIFY_TIMEOUT_MS)
    },
  }
}
