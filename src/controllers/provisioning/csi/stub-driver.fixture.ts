// A stub CSI driver with scripted replies. It records requests and fails unscripted calls with UNIMPLEMENTED.
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

export type Replies = Partial<ServiceHandlers<typeof Controller>>

export interface StubDriver extends ReturnType<typeof createCsiDriver> {
  readonly createRequests: CreateVolumeRequest[]
  readonly deleteRequests: DeleteVolumeRequest[]
  readonly capacityRequests: GetCapacityRequest[]
  /** Replaces the replies of the given calls. */
  setReplies(replies: Replies): void
}

export function createStubDriver(initialReplies: Replies = {}): StubDriver {
  let replies = initialReplies
  const createRequests: CreateVolumeRequest[] = []
  const deleteRequests: DeleteVolumeRequest[] = []
  const capacityRequests: GetCapacityRequest[] = []
  const requestsByMethod: Record<string, Message[]> = {
    createVolume: createRequests,
    deleteVolume: deleteRequests,
    getCapacity: capacityRequests,
  }

  async function handleCall(
    method: DescMethod,
    request: Message,
    { signal }: { signal?: AbortSignal },
  ): Promise<Message> {
    requestsByMethod[method.localName]?.push(request)
    const handler = (replies as Record<string, ((request: Message, call: object) => Promise<object>) | undefined>)[
      method.localName
    ]
    if (!handler) throw new CsiError('UNIMPLEMENTED', `${method.name} is not implemented`)
    const reply = await handler(request, { signal: signal ?? new AbortController().signal })
    return create(method.output, reply as MessageInitShape<typeof method.output>)
  }
  return {
    ...createCsiDriver(handleCall),
    createRequests,
    deleteRequests,
    capacityRequests,
    setReplies: (overrides) => {
      replies = { ...replies, ...overrides }
    },
  }
}

/** Replies of a driver that creates every requested volume. */
export const CREATES_VOLUMES: Replies = {
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

export const TOPOLOGY_FACTS = factsOf(
  ['CREATE_DELETE_VOLUME'],
  ['CONTROLLER_SERVICE', 'VOLUME_ACCESSIBILITY_CONSTRAINTS'],
)
