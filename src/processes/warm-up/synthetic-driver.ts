// A CSI driver without storage: it answers the calls that provision a volume. The messages are encoded and decoded as over a
// socket.
import { create, type DescMethod, fromBinary, type Message, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/log.ts'
import { type CallObserver, type CsiConnection, CsiError, createCsiDriver } from '../../csi/index.ts'
import {
  Controller,
  ControllerServiceCapability_RPC_Type as ControllerCapability,
  Identity,
  PluginCapability_Service_Type as PluginService,
} from '../../csi/gen/csi_pb.js'

export const SYNTHETIC_DRIVER = 'warm-up.stowage.dev'

export interface SyntheticDriverOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: CallObserver
}

export function connectSyntheticDriver({ clock, log, metrics }: SyntheticDriverOptions): CsiConnection {
  const driver = createCsiDriver(
    async (method, request) => {
      const answer = ANSWERS.get(method)
      if (!answer) throw new CsiError('UNIMPLEMENTED', `${SYNTHETIC_DRIVER} does not implement ${method.name}`)
      const receivedRequest = fromBinary(method.input, toBinary(method.input, request))
      const response = create(method.output, answer(receivedRequest))
      return fromBinary(method.output, toBinary(method.output, response))
    },
    { instruments: { clock, log, metrics } },
  )
  return { ...driver, close() {} }
}

type Answer = (request: Message) => Record<string, unknown>

const answerOf = <M extends DescMethod>(
  method: M,
  answer: (request: never) => MessageInitShape<M['output']>,
): readonly [DescMethod, Answer] => [method, answer as Answer]

const ANSWERS: ReadonlyMap<DescMethod, Answer> = new Map([
  answerOf(Identity.method.probe, () => ({})),
  answerOf(Identity.method.getPluginInfo, () => ({ name: SYNTHETIC_DRIVER, vendorVersion: '1' })),
  answerOf(Identity.method.getPluginCapabilities, () => ({
    capabilities: [{ type: { case: 'service', value: { type: PluginService.CONTROLLER_SERVICE } } }],
  })),
  answerOf(Controller.method.controllerGetCapabilities, () => ({
    capabilities: [{ type: { case: 'rpc', value: { type: ControllerCapability.CREATE_DELETE_VOLUME } } }],
  })),
  answerOf(
    Controller.method.createVolume,
    ({ name, capacityRange }: { name: string; capacityRange?: { requiredBytes: bigint } }) => ({
      volume: { volumeId: name, capacityBytes: capacityRange?.requiredBytes },
    }),
  ),
  answerOf(Controller.method.deleteVolume, () => ({})),
])
