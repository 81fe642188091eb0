// The planted faults: violations of the CSI specification to plant into the fake driver, each with the check that must detect it.
// planted-faults.test.ts tests each of them; docs/reference/verify-checks.md lists them.
import { create } from '@bufbuild/protobuf'
import type { FakeDriver } from '../csi/fake/index.ts'
import { CapacityRangeSchema, CreateVolumeRequestSchema, TopologySchema, type Volume } from '../csi/gen/csi_pb.js'
import { CsiError, type CsiFailureCode } from '../csi/index.ts'
import type { FakeServices, FakeVerification } from './fake-driver.fixture.ts'

export interface PlantedFault extends Pick<FakeVerification, 'fakeSettings'> {
  readonly title: string
  /** The id of a check that detects the fault. */
  readonly check: string
  plant(services: FakeServices, fake: FakeDriver): void
}

const CALL = { signal: new AbortController().signal }

function fail(code: CsiFailureCode, message = 'planted'): never {
  throw new CsiError(code, message)
}

type ServiceName = keyof FakeServices
type AnyHandler = (request: Record<string, any>, call: typeof CALL) => Promise<Record<string, any>>

/** Replaces a handler. `original` is the correct one. */
function replace(
  services: FakeServices,
  service: ServiceName,
  method: string,
  handle: (request: Record<string, any>, original: (request: Record<string, any>) => Promise<any>) => Promise<any>,
): void {
  const handlers = services[service] as unknown as Record<string, AnyHandler>
  const original = handlers[method] as AnyHandler
  handlers[method] = (request, call) => handle(request, (changed) => original(changed, call))
}

/** Replaces an error code with another outcome. */
const replaceCode =
  (service: ServiceName, method: string, from: CsiFailureCode, to: CsiFailureCode | 'OK', response: object = {}) =>
  (services: FakeServices): void =>
    replace(services, service, method, async (request, original) => {
      try {
        return await original(request)
      } catch (error) {
        if (!(error instanceof CsiError) || error.codeName !== from) throw error
        return to === 'OK' ? response : fail(to, error.message)
      }
    })

/** Makes every call for the same subject fail after the first success. */
const failRepeated =
  (service: ServiceName, method: string, code: CsiFailureCode) =>
  (services: FakeServices): void => {
    const subjects = new Set<string>()
    replace(services, service, method, async (request, original) => {
      const subject = `${request.volumeId ?? ''} ${request.name ?? ''} ${request.nodeId ?? ''} ${request.targetPath ?? ''}`
      if (subjects.has(subject)) fail(code, 'already done')
      const response = await original(request)
      subjects.add(subject)
      return response
    })
  }

/** Makes a call fail with INTERNAL while another call for the same volume is in progress. */
const failWhenBusy =
  (service: ServiceName, method: string) =>
  (services: FakeServices): void => {
    const busyVolumes = new Set<string>()
    replace(services, service, method, async (request, original) => {
      if (busyVolumes.has(request.volumeId)) fail('INTERNAL', 'busy')
      busyVolumes.add(request.volumeId)
      await new Promise((resolve) => setTimeout(resolve, 2))
      busyVolumes.delete(request.volumeId)
      return original(request)
    })
  }

/** Changes the volume of a successful CreateVolume. */
const changeVolume =
  (change: (volume: Volume, request: Record<string, any>) => void) =>
  (services: FakeServices): void =>
    replace(services, 'controller', 'createVolume', async (request, original) => {
      const response = await original(request)
      change(response.volume, request)
      return response
    })

const capacityRange = (requiredBytes: bigint) => create(CapacityRangeSchema, { requiredBytes })

let uniqueNumber = 0

export const PLANTED_FAULTS: readonly PlantedFault[] = [
  // Identity and capabilities
  {
    title: 'GetPluginInfo returns a name of 70 characters',
    check: 'identity-name',
    fakeSettings: { name: 'x'.repeat(70) },
    plant() {},
  },
  {
    title: 'GetPluginInfo returns an empty version',
    check: 'identity-name',
    fakeSettings: { version: '' },
    plant() {},
  },
  {
    title: 'Probe reports that the driver is not ready',
    check: 'identity-probe',
    plant: (services) => replace(services, 'identity', 'probe', async () => ({ ready: false })),
  },
  {
    title: 'the controller capabilities change with every response',
    check: 'identity-stable',
    plant: (services) =>
      replace(services, 'controller', 'controllerGetCapabilities', async (request, original) => {
        const { capabilities } = await original(request)
        return { capabilities: uniqueNumber++ % 2 === 0 ? capabilities : capabilities.slice(1) }
      }),
  },
  {
    title: 'CONTROLLER_SERVICE is not advertised',
    check: 'plugin-services',
    fakeSettings: { plugin: ['VOLUME_ACCESSIBILITY_CONSTRAINTS'] },
    plant() {},
  },
  {
    title: 'an advertised controller call is not implemented',
    check: 'controller-implemented',
    plant: (services) => replace(services, 'controller', 'getCapacity', async () => fail('UNIMPLEMENTED')),
  },
  {
    title: 'GET_SNAPSHOT is advertised, but GetSnapshot is not implemented',
    check: 'controller-implemented',
    plant: (services) => replace(services, 'controller', 'getSnapshot', async () => fail('UNIMPLEMENTED')),
  },
  {
    title: 'an advertised node call is not implemented',
    check: 'node-implemented',
    plant: (services) => replace(services, 'node', 'nodeGetVolumeStats', async () => fail('UNIMPLEMENTED')),
  },
  {
    title: 'NodeGetInfo returns an empty node id',
    check: 'node-info',
    plant: (services) => replace(services, 'node', 'nodeGetInfo', async () => ({ nodeId: '' })),
  },
  {
    title: 'NodeGetInfo returns a negative volume limit',
    check: 'node-info',
    plant: (services) =>
      replace(services, 'node', 'nodeGetInfo', async (request, original) => ({
        ...(await original(request)),
        maxVolumesPerNode: -1n,
      })),
  },
  {
    title: 'NodeGetInfo has no topology, although the driver has accessibility constraints',
    check: 'node-topology',
    plant: (services) =>
      replace(services, 'node', 'nodeGetInfo', async (request, original) => {
        const { accessibleTopology: _, ...info } = await original(request)
        return info
      }),
  },

  // CreateVolume
  {
    title: 'CreateVolume creates a second volume when it is repeated',
    check: 'create-idempotent',
    plant: (services) =>
      replace(services, 'controller', 'createVolume', async (request, original) =>
        original(
          request.name
            ? create(CreateVolumeRequestSchema, { ...request, name: `${request.name}-${++uniqueNumber}` })
            : request,
        ),
      ),
  },
  {
    title: 'a repeated CreateVolume fails with ALREADY_EXISTS',
    check: 'life-reply-lost',
    plant: failRepeated('controller', 'createVolume', 'ALREADY_EXISTS'),
  },
  {
    title: 'the volume context differs in every response',
    check: 'create-context-stable',
    plant: changeVolume((volume) => {
      volume.volumeContext = { at: String(++uniqueNumber) }
    }),
  },
  {
    title: 'CreateVolume accepts a request without a name',
    check: 'create-required-fields',
    plant: (services) =>
      replace(services, 'controller', 'createVolume', async (request, original) =>
        original({ ...request, name: request.name || `unnamed-${++uniqueNumber}` }),
      ),
  },
  {
    title: 'the volume is smaller than required',
    check: 'create-volume',
    plant: changeVolume((volume) => {
      volume.capacityBytes = (volume.capacityBytes ?? 0n) / 2n
    }),
  },
  {
    title: 'the volume context is larger than 4 KiB',
    check: 'create-volume',
    plant: changeVolume((volume) => {
      volume.volumeContext = { blob: 'x'.repeat(5_000) }
    }),
  },
  {
    title: 'CreateVolume returns an existing volume of another size',
    check: 'create-conflicting-size',
    plant: (services, { state }) =>
      replace(services, 'controller', 'createVolume', async (request, original) => {
        const existing = Object.values(state.volumes).find(({ name }) => name === request.name)
        if (!existing) return original(request)
        return { volume: { volumeId: existing.id, capacityBytes: BigInt(existing.capacityBytes) } }
      }),
  },
  {
    title: 'CreateVolume ignores the limit',
    check: 'create-limit-below-required',
    plant: (services) =>
      replace(services, 'controller', 'createVolume', async (request, original) =>
        original({ ...request, capacityRange: request.capacityRange && { ...request.capacityRange, limitBytes: 0n } }),
      ),
  },
  {
    title: 'CreateVolume rounds the size up beyond the limit',
    check: 'create-exact-size',
    plant: (services) =>
      replace(services, 'controller', 'createVolume', async (request, original) => {
        const bytes = (((request.capacityRange?.requiredBytes ?? 0n) + 1024n ** 3n - 1n) / 1024n ** 3n) * 1024n ** 3n
        return original({ ...request, capacityRange: capacityRange(bytes) })
      }),
  },
  {
    title: 'CreateVolume returns INTERNAL for a size above the maximum',
    check: 'create-impossible-size',
    plant: replaceCode('controller', 'createVolume', 'OUT_OF_RANGE', 'INTERNAL'),
  },
  {
    title: 'CreateVolume truncates names to 64 characters',
    check: 'create-longest-name',
    plant: (services) =>
      replace(services, 'controller', 'createVolume', async (request, original) =>
        original({ ...request, name: request.name.slice(0, 64) }),
      ),
  },
  {
    title: 'CreateVolume ignores the topology',
    check: 'create-unknown-topology',
    plant: (services) =>
      replace(services, 'controller', 'createVolume', async (request, original) =>
        original({ ...request, accessibilityRequirements: undefined }),
      ),
  },
  {
    title: 'CreateVolume puts the volume into another topology',
    check: 'create-topology',
    plant: changeVolume((volume) => {
      volume.accessibleTopology = [create(TopologySchema, { segments: { 'fake.stowage.example/zone': 'b' } })]
    }),
  },
  {
    title: 'CreateVolume ignores a snapshot that does not exist',
    check: 'create-unknown-snapshot',
    plant: (services) =>
      replace(services, 'controller', 'createVolume', async (request, original) =>
        original({ ...request, volumeContentSource: undefined }),
      ),
  },
  {
    title: 'concurrent CreateVolume calls with one name create several volumes',
    check: 'create-concurrent',
    plant: (services, { state }) =>
      replace(services, 'controller', 'createVolume', async (request, original) => {
        const existing = Object.values(state.volumes).find(({ name }) => name.startsWith(`${request.name}#`))
        await new Promise((resolve) => setImmediate(resolve)) // the check and the creation are not atomic
        if (existing) return { volume: { volumeId: existing.id, capacityBytes: BigInt(existing.capacityBytes) } }
        return original({ ...request, name: `${request.name}#${++uniqueNumber}` })
      }),
  },
  {
    title: 'volumes that are created at the same time get one id',
    check: 'create-many',
    plant: (services) => {
      let last: object | undefined
      replace(services, 'controller', 'createVolume', async (request, original) => {
        const earlier = last
        const response = await original(request)
        last = response
        setImmediate(() => {
          last = undefined
        })
        return earlier ?? response
      })
    },
  },
  {
    title: 'a cancelled call blocks its volume forever',
    check: 'life-cancelled',
    plant(services) {
      const busyNames = new Set<string>()
      const { createVolume } = services.controller
      services.controller = {
        ...services.controller,
        async createVolume(request, call) {
          if (busyNames.has(request.name)) fail('ABORTED', 'in progress')
          busyNames.add(request.name)
          await new Promise((resolve) => setTimeout(resolve, 10))
          if (call.signal.aborted) return fail('CANCELLED') // forgets to release the name
          const response = await createVolume(request, call)
          busyNames.delete(request.name)
          return response
        },
      }
    },
  },

  // DeleteVolume and ValidateVolumeCapabilities
  {
    title: 'DeleteVolume of an unknown volume fails with NOT_FOUND',
    check: 'delete-unknown',
    plant: (services, { state }) =>
      replace(services, 'controller', 'deleteVolume', async (request, original) =>
        request.volumeId === '' || state.volumes[request.volumeId] ? original(request) : fail('NOT_FOUND'),
      ),
  },
  {
    title: 'a repeated DeleteVolume fails',
    check: 'delete-idempotent',
    plant: failRepeated('controller', 'deleteVolume', 'NOT_FOUND'),
  },
  {
    title: 'DeleteVolume reports success, and deletes nothing',
    check: 'delete-removes',
    plant: (services) =>
      replace(services, 'controller', 'deleteVolume', async ({ volumeId }) =>
        volumeId ? {} : fail('INVALID_ARGUMENT', 'volume_id is required'),
      ),
  },
  {
    title: 'DeleteVolume deletes a volume in use',
    check: 'delete-in-use',
    plant: (services, { state }) =>
      replace(services, 'controller', 'deleteVolume', async (request, original) => {
        const volume = state.volumes[request.volumeId]
        if (volume) Object.assign(volume, { attachments: {}, onNodes: {} })
        return original(request)
      }),
  },
  {
    title: 'ValidateVolumeCapabilities returns OK for an unknown volume',
    check: 'validate-unknown',
    plant: replaceCode('controller', 'validateVolumeCapabilities', 'NOT_FOUND', 'OK'),
  },
  {
    title: 'ValidateVolumeCapabilities confirms nothing',
    check: 'validate-confirms',
    plant: (services) =>
      replace(services, 'controller', 'validateVolumeCapabilities', async (request, original) => {
        await original(request)
        return { message: 'not supported' }
      }),
  },

  // ControllerPublishVolume
  {
    title: 'ControllerPublishVolume accepts an unknown node',
    check: 'attach-unknown-node',
    plant: replaceCode('controller', 'controllerPublishVolume', 'NOT_FOUND', 'OK'),
  },
  {
    title: 'a repeated ControllerPublishVolume fails',
    check: 'attach-idempotent',
    plant: failRepeated('controller', 'controllerPublishVolume', 'FAILED_PRECONDITION'),
  },
  {
    title: 'ControllerPublishVolume succeeds for a volume that is published with a different readonly flag',
    check: 'attach-incompatible',
    plant: replaceCode('controller', 'controllerPublishVolume', 'ALREADY_EXISTS', 'OK'),
  },
  {
    title: 'ControllerPublishVolume publishes a single-node volume to two nodes',
    check: 'attach-two-nodes',
    plant: replaceCode('controller', 'controllerPublishVolume', 'FAILED_PRECONDITION', 'OK'),
  },
  {
    title: 'a repeated ControllerUnpublishVolume fails with INTERNAL',
    check: 'detach-idempotent',
    plant: failRepeated('controller', 'controllerUnpublishVolume', 'INTERNAL'),
  },
  {
    title: 'ControllerUnpublishVolume reports success, and keeps the volume attached',
    check: 'life',
    plant: (services) => replace(services, 'controller', 'controllerUnpublishVolume', async () => ({})),
  },
  {
    title: 'ControllerUnpublishVolume without a node id does nothing',
    check: 'detach-all-nodes',
    plant: (services) =>
      replace(services, 'controller', 'controllerUnpublishVolume', async (request, original) =>
        request.volumeId && !request.nodeId ? {} : original(request),
      ),
  },

  // Lists and capacity
  {
    title: 'ListVolumes returns no volumes',
    check: 'list-consistent',
    plant: (services) => replace(services, 'controller', 'listVolumes', async () => ({ entries: [] })),
  },
  {
    title: 'ListVolumes ignores max_entries',
    check: 'list-pages',
    plant: (services) =>
      replace(services, 'controller', 'listVolumes', async (request, original) =>
        original({ ...request, maxEntries: 0 }),
      ),
  },
  {
    title: 'ListVolumes returns no token for the next page',
    check: 'list-pages',
    plant: (services) =>
      replace(services, 'controller', 'listVolumes', async (request, original) => ({
        ...(await original(request)),
        nextToken: '',
      })),
  },
  {
    title: 'ListVolumes returns an empty list for an invalid token',
    check: 'list-invalid-token',
    plant: replaceCode('controller', 'listVolumes', 'ABORTED', 'OK'),
  },
  {
    title: 'ListVolumes names the node of a detached volume',
    check: 'list-published-nodes',
    plant: (services) =>
      replace(services, 'controller', 'listVolumes', async (request, original) => {
        const response = await original(request)
        for (const { status } of response.entries) status.publishedNodeIds = ['node-1']
        return response
      }),
  },
  {
    title: 'ControllerGetVolume returns OK for an unknown volume',
    check: 'get-volume',
    plant: replaceCode('controller', 'controllerGetVolume', 'NOT_FOUND', 'OK'),
  },
  {
    title: 'GetCapacity reports a negative capacity',
    check: 'capacity-plausible',
    plant: (services) => replace(services, 'controller', 'getCapacity', async () => ({ availableCapacity: -1n })),
  },
  {
    title: 'CreateVolume accepts more than the maximum volume size',
    check: 'capacity-maximum',
    plant: (services) =>
      replace(services, 'controller', 'getCapacity', async () => ({
        availableCapacity: 1024n ** 2n,
        maximumVolumeSize: 1024n ** 2n,
      })),
  },

  // Expansion and modification
  {
    title: 'ControllerExpandVolume reports the new size, and keeps the old one',
    check: 'expand-volume',
    plant: (services) =>
      replace(services, 'controller', 'controllerExpandVolume', async (request, original) => {
        if (!request.volumeId || !request.capacityRange) return original(request)
        return { capacityBytes: request.capacityRange.requiredBytes, nodeExpansionRequired: false }
      }),
  },
  {
    title: 'a repeated ControllerExpandVolume fails',
    check: 'life-sent-twice',
    plant: failRepeated('controller', 'controllerExpandVolume', 'INVALID_ARGUMENT'),
  },
  {
    title: 'ControllerExpandVolume of a large enough volume fails',
    check: 'expand-to-smaller',
    plant: (services, { state }) =>
      replace(services, 'controller', 'controllerExpandVolume', async (request, original) => {
        const bytes = BigInt(state.volumes[request.volumeId]?.capacityBytes ?? 0)
        if (bytes > (request.capacityRange?.requiredBytes ?? 0n)) fail('INVALID_ARGUMENT', 'cannot shrink')
        return original(request)
      }),
  },
  {
    title: 'ControllerExpandVolume of an unknown volume fails with INTERNAL',
    check: 'expand-unknown',
    plant: replaceCode('controller', 'controllerExpandVolume', 'NOT_FOUND', 'INTERNAL'),
  },
  {
    title: 'ControllerExpandVolume ignores the limit',
    check: 'expand-limit-below-required',
    plant: (services) =>
      replace(services, 'controller', 'controllerExpandVolume', async (request, original) =>
        original({ ...request, capacityRange: request.capacityRange && { ...request.capacityRange, limitBytes: 0n } }),
      ),
  },
  {
    title: 'a driver with offline expansion expands a published volume',
    check: 'expand-in-use',
    fakeSettings: { expansion: ['OFFLINE'] },
    plant: (services) =>
      replace(services, 'controller', 'controllerExpandVolume', async (request) => ({
        capacityBytes: request.capacityRange.requiredBytes,
      })),
  },
  {
    title: 'NodeExpandVolume of an unknown volume succeeds',
    check: 'node-expand-unknown',
    plant: replaceCode('node', 'nodeExpandVolume', 'NOT_FOUND', 'OK'),
  },
  {
    title: 'NodeExpandVolume never succeeds',
    check: 'life',
    plant: (services) => replace(services, 'node', 'nodeExpandVolume', async () => fail('INTERNAL')),
  },
  {
    title: 'ControllerModifyVolume ignores unknown keys',
    check: 'modify-unknown-key',
    plant: replaceCode('controller', 'controllerModifyVolume', 'INVALID_ARGUMENT', 'OK'),
  },
  {
    title: 'a repeated ControllerModifyVolume fails',
    check: 'modify-idempotent',
    plant: failRepeated('controller', 'controllerModifyVolume', 'INVALID_ARGUMENT'),
  },
  {
    title: 'ControllerModifyVolume fails once a volume is being expanded or was expanded',
    check: 'life-expand-and-modify',
    plant(services) {
      const expanded = new Set<string>()
      replace(services, 'controller', 'controllerExpandVolume', async (request, original) => {
        expanded.add(request.volumeId)
        return original(request)
      })
      replace(services, 'controller', 'controllerModifyVolume', async (request, original) =>
        expanded.has(request.volumeId) ? fail('INVALID_ARGUMENT', 'was expanded') : original(request),
      )
    },
  },

  // Node service
  {
    title: 'NodeStageVolume of an unknown volume succeeds',
    check: 'stage-unknown',
    plant: replaceCode('node', 'nodeStageVolume', 'NOT_FOUND', 'OK'),
  },
  {
    title: 'NodeStageVolume fails if the volume is staged',
    check: 'stage-idempotent',
    plant: failRepeated('node', 'nodeStageVolume', 'ALREADY_EXISTS'),
  },
  {
    title: 'concurrent NodeStageVolume calls fail with INTERNAL',
    check: 'stage-concurrent',
    plant: failWhenBusy('node', 'nodeStageVolume'),
  },
  {
    title: 'NodeUnstageVolume fails if the volume is not staged',
    check: 'unstage-idempotent',
    plant: failRepeated('node', 'nodeUnstageVolume', 'FAILED_PRECONDITION'),
  },
  {
    title: 'NodePublishVolume accepts a request without a capability',
    check: 'publish-required-fields',
    plant: (services) =>
      replace(services, 'node', 'nodePublishVolume', async (request, original) =>
        request.volumeId && request.targetPath && !request.volumeCapability ? {} : original(request),
      ),
  },
  {
    title: 'NodePublishVolume publishes without a staging path',
    check: 'publish-without-staging-path',
    plant: replaceCode('node', 'nodePublishVolume', 'FAILED_PRECONDITION', 'OK'),
  },
  {
    title: 'a repeated NodePublishVolume fails with INTERNAL',
    check: 'publish-idempotent',
    plant: failRepeated('node', 'nodePublishVolume', 'INTERNAL'),
  },
  {
    title: 'NodePublishVolume succeeds for a volume that is published with a different readonly flag',
    check: 'publish-incompatible',
    plant: replaceCode('node', 'nodePublishVolume', 'ALREADY_EXISTS', 'OK'),
  },
  {
    title: 'NodePublishVolume allows two writers of a single-writer volume',
    check: 'publish-single-writer',
    plant: replaceCode('node', 'nodePublishVolume', 'FAILED_PRECONDITION', 'OK'),
  },
  {
    title: 'NodeUnpublishVolume leaves the target path',
    check: 'publish-target',
    plant: (services) => replace(services, 'node', 'nodeUnpublishVolume', async () => ({})),
  },
  {
    title: 'NodeUnpublishVolume fails if the volume is not published',
    check: 'unpublish-idempotent',
    plant: failRepeated('node', 'nodeUnpublishVolume', 'NOT_FOUND'),
  },
  {
    title: 'NodeGetVolumeStats of an unknown volume succeeds',
    check: 'stats-not-found',
    plant: replaceCode('node', 'nodeGetVolumeStats', 'NOT_FOUND', 'OK'),
  },
  {
    title: 'NodeGetVolumeStats reports more used than total bytes',
    check: 'stats-plausible',
    plant: (services) =>
      replace(services, 'node', 'nodeGetVolumeStats', async (request, original) => {
        await original(request)
        return { usage: [{ unit: 1, total: 10n, used: 20n, available: 0n }] }
      }),
  },

  // Messages, faults and concurrency
  {
    title: 'an error message quotes the secrets of the request',
    check: 'secrets-not-echoed',
    plant: (services) =>
      replace(services, 'controller', 'createVolume', async (request, original) => {
        try {
          return await original(request)
        } catch (error) {
          return fail((error as CsiError).codeName, `${JSON.stringify(request.secrets)}: ${(error as Error).message}`)
        }
      }),
  },
  {
    title: 'the volume context contains a secret',
    check: 'secrets-not-echoed',
    plant: changeVolume((volume, request) => {
      volume.volumeContext = { password: Buffer.from(Object.values(request.secrets).join()).toString('base64') }
    }),
  },
  {
    title: 'a failed call has no error message',
    check: 'error-messages',
    plant: (services) =>
      replace(services, 'controller', 'deleteVolume', async (request, original) =>
        request.volumeId ? original(request) : fail('INVALID_ARGUMENT', ''),
      ),
  },
  {
    title: 'a repeated NodePublishVolume fails with FAILED_PRECONDITION',
    check: 'life-slow',
    plant: failRepeated('node', 'nodePublishVolume', 'FAILED_PRECONDITION'),
  },
  {
    title: 'only one volume can be published at a time',
    check: 'life-many',
    plant: (services, { state }) =>
      replace(services, 'node', 'nodePublishVolume', async (request, original) => {
        const isOtherPublished = Object.values(state.volumes).some(
          ({ id, onNodes }) => id !== request.volumeId && Object.keys(onNodes['node-1']?.published ?? {}).length > 0,
        )
        return isOtherPublished ? fail('INTERNAL', 'busy') : original(request)
      }),
  },
  {
    title: 'a volume can be published at one target only',
    check: 'life-two-pods',
    plant: (services, { state }) =>
      replace(services, 'node', 'nodePublishVolume', async (request, original) => {
        const targets = Object.keys(state.volumes[request.volumeId]?.onNodes['node-1']?.published ?? {})
        return targets.some((target) => target !== request.targetPath) ? fail('FAILED_PRECONDITION') : original(request)
      }),
  },
  {
    title: 'concurrent ControllerPublishVolume calls fail with INTERNAL',
    check: 'life-concurrent',
    plant: failWhenBusy('controller', 'controllerPublishVolume'),
  },
  {
    title: 'CreateVolume creates a small volume if the storage is exhausted',
    check: 'life-exhausted',
    plant: (services) =>
      replace(services, 'controller', 'createVolume', async (request, original) => {
        try {
          return await original(request)
        } catch {
          const response = await original({ ...request, capacityRange: capacityRange(1024n) })
          return { volume: { ...response.volume, capacityBytes: request.capacityRange.requiredBytes } }
        }
      }),
  },
  {
    title: 'NodeStageVolume never responds',
    check: 'stage-idempotent',
    plant: (services) => replace(services, 'node', 'nodeStageVolume', () => new Promise(() => {})),
  },
]
