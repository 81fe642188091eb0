// A stub CSI driver with scripted replies. Unscripted calls fail with UNIMPLEMENTED; all requests are recorded.
import { create, type DescMethod, type Message, type MessageInitShape } from '@bufbuild/protobuf'
import type {
  Controller,
  CreateVolumeRequest,
  DeleteVolumeRequest,
  GetCapacityRequest,
} from '../../../csi/gen/csi_pb.js'
import {
  type ControllerCapability,
  CsiError,
  createCsiDriver,
  type DriverFacts,
  type PluginService,
  type ServiceHandlers,
} from '../../../csi/index.ts'

export type Answers = Partial<ServiceHandlers<typeof Controller>>

export interface StubDriver extends ReturnType<typeof createCsiDriver> {
  readonly created: CreateVolumeRequest[]
  readonly deleted: DeleteVolumeRequest[]
  readonly capacityAsked: GetCapacityRequest[]
  /** Replies from now on. */
  answer(answers: Answers): void
}

export function stubDriver(first: Answers = {}): StubDriver {
  let answers = first
  const created: CreateVolumeRequest[] = []
  const deleted: DeleteVolumeRequest[] = []
  const capacityAsked: GetCapacityRequest[] = []
  const kept: Record<string, Message[]> = { createVolume: created, deleteVolume: deleted, getCapacity: capacityAsked }

  async function carry(method: DescMethod, request: Message, { signal }: { signal?: AbortSignal }): Promise<Message> {
    kept[method.localName]?.push(request)
    const answer = (answers as Record<string, ((request: Message, call: object) => Promise<object>) | undefined>)[
      method.localName
    ]
    if (!answer) throw new CsiError('UNIMPLEMENTED', `${method.name} is not implemented`)
    const reply = await answer(request, { signal: signal ?? new AbortController().signal })
    return create(method.output, reply as MessageInitShape<typeof method.output>)
  }
  return {
    ...createCsiDriver(carry),
    created,
    deleted,
    capacityAsked,
    answer: (next) => {
      answers = { ...answers, ...next }
    },
  }
}

/** A driver that creates every requested volume. */
export const CREATES_VOLUMES: Answers = {
  createVolume: async ({ name, capacityRange, volumeContentSource: contentSource }) => ({
    volume: { volumeId: `id-${name}`, capacityBytes: capacityRange?.requiredBytes ?? 0n, contentSource },
  }),
  deleteVolume: async () => ({}),
}

export const factsOf = (
  controller: readonly ControllerCapability[] = ['CREATE_DELETE_VOLUME'],
  plugin: readonly PluginService[] = ['CONTROLLER_SERVICE'],
): DriverFacts => ({
  name: 'disk.example.com',
  version: '1.0.0',
  plugin: new Set(plugin),
  controller: new Set(controller),
  expansion: new Set(),
  node: new Set(),
})
