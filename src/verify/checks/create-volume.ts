// Checks CreateVolume.
import { attempt, expectCode, expectOk } from '../calls/outcomes.ts'
import { type Check, type CheckContext, violate } from '../check.ts'
import {
  atLeast,
  type CreateRequest,
  createRequest,
  createVolume,
  deleteVolume,
  exactly,
  findListedEntry,
  IMPOSSIBLE_BYTES,
  sendCreateRequest,
  UNKNOWN_ID,
} from './requests.ts'

const NEEDS = { controller: ['CREATE_DELETE_VOLUME'] } as const
const CONCURRENT_CALLS = 5
const CONCURRENT_VOLUMES = 8
/** The size limit of the CSI specification for names and ids. */
const STRING_BYTES_MAX = 128
const CONTEXT_BYTES_MAX = 4_096

export const createVolumeChecks: readonly Check[] = [
  {
    id: 'create-required-fields',
    title: 'CreateVolume rejects a request without name or capabilities',
    rule: {
      section: 'Error Scheme; CreateVolume',
      level: 'must',
      text: 'A request without a required field fails with INVALID_ARGUMENT.',
    },
    needs: NEEDS,
    async run(context) {
      const send = async (changes: CreateRequest) =>
        attempt(context.csi.controller.createVolume(createRequest(context, changes)))
      expectCode(await send({ name: '' }), 'INVALID_ARGUMENT', 'CreateVolume without a name')
      expectCode(await send({ volumeCapabilities: [] }), 'INVALID_ARGUMENT', 'CreateVolume without volume_capabilities')
    },
  },
  {
    id: 'create-volume',
    title: 'CreateVolume returns a usable volume of the requested size',
    rule: {
      section: 'CreateVolume; Size Limits',
      level: 'must',
      text: 'The volume has an id of at most 128 bytes, at least the required bytes, and a context of at most 4 KiB.',
    },
    needs: NEEDS,
    async run(context) {
      const volume = await createVolume(context)
      const { volumeId, capacityBytes, volumeContext } = volume
      if (Buffer.byteLength(volumeId) > STRING_BYTES_MAX)
        violate(`volume_id has ${Buffer.byteLength(volumeId)} bytes; the maximum is ${STRING_BYTES_MAX}`)
      if (capacityBytes !== 0n && capacityBytes < BigInt(context.settings.sizeBytes))
        violate(`required_bytes is ${context.settings.sizeBytes}, but the volume has ${capacityBytes} bytes`)
      const contextBytes = Object.entries(volumeContext).reduce(
        (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value),
        0,
      )
      if (contextBytes > CONTEXT_BYTES_MAX)
        violate(`volume_context has ${contextBytes} bytes; the maximum is ${CONTEXT_BYTES_MAX}`)
    },
  },
  {
    id: 'create-idempotent',
    title: 'CreateVolume with the same request returns the same volume',
    rule: {
      section: 'CreateVolume',
      level: 'must',
      text: 'The name is the idempotency key: a repeated request succeeds and returns the volume of the first one.',
    },
    needs: NEEDS,
    async run(context) {
      const request = createRequest(context)
      const first = await sendCreateRequest(context, request, 'CreateVolume')
      const second = await sendCreateRequest(context, request, 'CreateVolume with the request of an existing volume')
      if (first.volumeId !== second.volumeId)
        violate(`the same request created the volumes ${first.volumeId} and ${second.volumeId}`)
      if (first.capacityBytes !== second.capacityBytes)
        violate(`the same request reported ${first.capacityBytes} and then ${second.capacityBytes} bytes`)
    },
  },
  {
    id: 'create-context-stable',
    title: 'the context of a volume does not change',
    rule: {
      section: 'CreateVolume',
      level: 'must',
      text: 'The volume context is immutable: a repeated request returns the same one.',
    },
    needs: NEEDS,
    async run(context) {
      const request = createRequest(context)
      const first = await sendCreateRequest(context, request, 'CreateVolume')
      const second = await sendCreateRequest(context, request, 'CreateVolume with the request of an existing volume')
      const [firstText, secondText] = [first, second].map(({ volumeContext }) =>
        JSON.stringify(Object.entries(volumeContext).sort()),
      )
      if (firstText !== secondText) violate(`volume_context changed from ${firstText} to ${secondText}`)
    },
  },
  {
    id: 'create-conflicting-size',
    title: 'CreateVolume rejects a name that has a volume of another size',
    rule: {
      section: 'CreateVolume Errors',
      level: 'must',
      text: 'If the existing volume of that name is incompatible with the capacity range, the call fails with ALREADY_EXISTS.',
    },
    needs: NEEDS,
    async run(context) {
      const { sizeBytes, expandedBytes } = context.settings
      const request = createRequest(context, { capacityRange: atLeast(sizeBytes) })
      const { capacityBytes } = await sendCreateRequest(context, request, 'CreateVolume')
      const largerBytes = Math.max(expandedBytes, Number(capacityBytes) * 2)
      const conflict = { ...request, capacityRange: exactly(largerBytes) }
      const outcome = await attempt(context.csi.controller.createVolume(conflict))
      expectCode(outcome, 'ALREADY_EXISTS', `CreateVolume of an existing name with ${largerBytes} bytes`)
    },
  },
  {
    id: 'create-limit-below-required',
    title: 'CreateVolume rejects a limit below the required size',
    rule: {
      section: 'CreateVolume, CapacityRange; CreateVolume Errors',
      level: 'must',
      text: 'A volume has at least required_bytes and at most limit_bytes. No size satisfies a range with required above limit, so it fails with OUT_OF_RANGE or INVALID_ARGUMENT.',
    },
    needs: NEEDS,
    async run(context) {
      const bytes = BigInt(context.settings.sizeBytes)
      const request = createRequest(context, { capacityRange: { requiredBytes: bytes, limitBytes: bytes / 2n } })
      const outcome = await attempt(context.csi.controller.createVolume(request))
      expectCode(outcome, ['OUT_OF_RANGE', 'INVALID_ARGUMENT'], 'CreateVolume with required_bytes above limit_bytes')
    },
  },
  {
    id: 'create-negative-size',
    title: 'CreateVolume rejects a negative size',
    rule: {
      section: 'CreateVolume, CapacityRange',
      level: 'must',
      text: 'Sizes are not negative; a negative value is invalid and fails with INVALID_ARGUMENT or OUT_OF_RANGE.',
    },
    needs: NEEDS,
    async run(context) {
      const request = createRequest(context, { capacityRange: { requiredBytes: -1n } })
      const outcome = await attempt(context.csi.controller.createVolume(request))
      expectCode(outcome, ['INVALID_ARGUMENT', 'OUT_OF_RANGE'], 'CreateVolume with required_bytes -1')
    },
  },
  {
    id: 'create-exact-size',
    title: 'CreateVolume respects the limit',
    rule: {
      section: 'CreateVolume, CapacityRange',
      level: 'must',
      text: 'A volume is not larger than limit_bytes; a driver that cannot provide that fails with OUT_OF_RANGE.',
    },
    needs: NEEDS,
    async run(context) {
      const bytes = context.settings.sizeBytes + 1
      const request = createRequest(context, { capacityRange: exactly(bytes) })
      const outcome = await attempt(context.csi.controller.createVolume(request))
      if (outcome.code !== 'OK') return expectCode(outcome, 'OUT_OF_RANGE', `CreateVolume with exactly ${bytes} bytes`)
      const capacityBytes = outcome.response.volume?.capacityBytes ?? 0n
      if (capacityBytes > BigInt(bytes)) violate(`limit_bytes is ${bytes}, but the volume has ${capacityBytes} bytes`)
    },
  },
  {
    id: 'create-impossible-size',
    title: 'CreateVolume rejects a size beyond all storage, and leaves nothing behind',
    rule: {
      section: 'CreateVolume Errors',
      level: 'must',
      text: 'A size that the storage does not have fails with OUT_OF_RANGE or RESOURCE_EXHAUSTED, and the name is free afterwards.',
    },
    needs: NEEDS,
    async run(context) {
      const request = createRequest(context, { capacityRange: atLeast(IMPOSSIBLE_BYTES) })
      const outcome = await attempt(context.csi.controller.createVolume(request))
      expectCode(outcome, ['OUT_OF_RANGE', 'RESOURCE_EXHAUSTED'], `CreateVolume with ${IMPOSSIBLE_BYTES} bytes`)
      const smaller = { ...request, capacityRange: atLeast(context.settings.sizeBytes) }
      await sendCreateRequest(context, smaller, 'CreateVolume with the name of a rejected request and a possible size')
    },
  },
  {
    id: 'create-longest-name',
    title: 'CreateVolume accepts a name of 128 characters',
    rule: {
      section: 'Size Limits; CreateVolume',
      level: 'must',
      text: 'Names have up to 128 bytes. Two names that differ only in the last character are two volumes.',
    },
    needs: NEEDS,
    async run(context) {
      const stem = context.uniqueName().padEnd(STRING_BYTES_MAX - 1, 'x')
      const first = await sendCreateRequest(
        context,
        createRequest(context, { name: `${stem}a` }),
        'CreateVolume with 128 bytes',
      )
      const second = await sendCreateRequest(
        context,
        createRequest(context, { name: `${stem}b` }),
        'CreateVolume with 128 bytes',
      )
      if (first.volumeId === second.volumeId)
        violate(`two names of 128 characters that differ in the last one are one volume ${first.volumeId}`)
    },
  },
  {
    id: 'create-topology',
    title: 'CreateVolume creates a volume where the node can use it',
    rule: {
      section: 'CreateVolume, TopologyRequirement',
      level: 'must',
      text: 'With requisite topologies, the volume is accessible from at least one of them. If the response has a topology, it matches one of them.',
    },
    needs: { ...NEEDS, node: [], plugin: ['VOLUME_ACCESSIBILITY_CONSTRAINTS'] },
    async run(context) {
      const segments = context.nodeInfo?.accessibleTopology?.segments ?? {}
      const { accessibleTopology } = await createVolume(context)
      const isAccessible = accessibleTopology.some((topology) =>
        Object.entries(topology.segments).every(([key, value]) => segments[key] === value),
      )
      if (accessibleTopology.length > 0 && !isAccessible)
        violate('the accessible_topology of the volume does not include the requisite topology')
    },
  },
  {
    id: 'create-unknown-topology',
    title: 'CreateVolume rejects a topology that does not exist',
    rule: {
      section: 'CreateVolume Errors',
      level: 'must',
      text: 'If no volume can be created in any requisite topology, the call fails with RESOURCE_EXHAUSTED.',
    },
    needs: { ...NEEDS, node: [], plugin: ['VOLUME_ACCESSIBILITY_CONSTRAINTS'] },
    async run(context) {
      const keys = Object.keys(context.nodeInfo?.accessibleTopology?.segments ?? {})
      const segments = Object.fromEntries(keys.map((key) => [key, 'stowage-verify-nowhere']))
      const accessibilityRequirements = { requisite: [{ segments }], preferred: [{ segments }] }
      const outcome = await attempt(
        context.csi.controller.createVolume(createRequest(context, { accessibilityRequirements })),
      )
      expectCode(outcome, 'RESOURCE_EXHAUSTED', 'CreateVolume with a requisite topology that does not exist')
    },
  },
  {
    id: 'create-unknown-snapshot',
    title: 'CreateVolume rejects a snapshot that does not exist',
    rule: {
      section: 'CreateVolume Errors',
      level: 'must',
      text: 'A source that does not exist fails with NOT_FOUND.',
    },
    needs: { controller: ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT'] },
    async run(context) {
      const volumeContentSource = { type: { case: 'snapshot' as const, value: { snapshotId: UNKNOWN_ID } } }
      const outcome = await attempt(
        context.csi.controller.createVolume(createRequest(context, { volumeContentSource })),
      )
      expectCode(outcome, 'NOT_FOUND', 'CreateVolume from an unknown snapshot')
    },
  },
  {
    id: 'create-unknown-source-volume',
    title: 'CreateVolume rejects a source volume that does not exist',
    rule: {
      section: 'CreateVolume Errors',
      level: 'must',
      text: 'A source that does not exist fails with NOT_FOUND.',
    },
    needs: { controller: ['CREATE_DELETE_VOLUME', 'CLONE_VOLUME'] },
    async run(context) {
      const volumeContentSource = { type: { case: 'volume' as const, value: { volumeId: UNKNOWN_ID } } }
      const outcome = await attempt(
        context.csi.controller.createVolume(createRequest(context, { volumeContentSource })),
      )
      expectCode(outcome, 'NOT_FOUND', 'CreateVolume from an unknown volume')
    },
  },
  {
    id: 'create-concurrent',
    title: 'concurrent CreateVolume calls with one name create one volume',
    rule: {
      section: 'Concurrency; Error Scheme',
      level: 'must',
      text: 'Calls for one volume that arrive together succeed with the same volume, or fail with ABORTED while the first is in progress; a later call succeeds.',
    },
    needs: NEEDS,
    async run(context) {
      const request = createRequest(context)
      const outcomes = await Promise.all(
        Array.from({ length: CONCURRENT_CALLS }, () => attempt(context.csi.controller.createVolume(request))),
      )
      for (const outcome of outcomes)
        expectCode(outcome, ['OK', 'ABORTED'], `one of ${CONCURRENT_CALLS} concurrent CreateVolume calls`)
      const { volumeId } = await sendCreateRequest(
        context,
        request,
        'CreateVolume after concurrent calls with the same name',
      )
      const ids = new Set([...outcomes.flatMap(({ response }) => response?.volume?.volumeId ?? []), volumeId])
      if (ids.size > 1) violate(`concurrent calls with one name created ${ids.size} volumes: ${[...ids].join(', ')}`)
    },
  },
  {
    id: 'create-many',
    title: 'concurrent CreateVolume calls with different names create different volumes',
    rule: {
      section: 'Concurrency',
      level: 'must',
      text: 'Calls for different volumes may run at the same time; each succeeds with its own volume.',
    },
    needs: NEEDS,
    async run(context) {
      const requests = Array.from({ length: CONCURRENT_VOLUMES }, () => createRequest(context))
      const volumes = await Promise.all(
        requests.map((request) =>
          sendCreateRequest(
            context,
            request,
            `one of ${CONCURRENT_VOLUMES} concurrent CreateVolume calls for different volumes`,
          ),
        ),
      )
      const ids = new Set(volumes.map(({ volumeId }) => volumeId))
      if (ids.size < CONCURRENT_VOLUMES) violate(`${CONCURRENT_VOLUMES} volumes have only ${ids.size} different ids`)
    },
  },
  {
    id: 'create-cancelled',
    title: 'CreateVolume succeeds after a cancelled call',
    rule: {
      section: 'Timeouts; CreateVolume',
      level: 'must',
      text: 'The caller may cancel or lose a call. A repeated request continues or returns the finished result, so there is one volume.',
    },
    needs: NEEDS,
    async run(context) {
      const request = createRequest(context)
      const cancel = new AbortController()
      const cancelledCall = attempt(context.csi.controller.createVolume(request, { signal: cancel.signal }))
      await context.pause(context.random() * 3)
      cancel.abort()
      const first = await cancelledCall
      const { volumeId } = await repeatUntilOk(context, request)
      const firstId = first.response?.volume?.volumeId
      if (firstId !== undefined && firstId !== volumeId)
        violate(`the repeated call created a second volume ${volumeId} in addition to ${firstId}`)
      await deleteVolume(context, volumeId)
      if (await findListedEntry(context, volumeId))
        violate('ListVolumes has the volume after a cancelled CreateVolume, a repeated CreateVolume and DeleteVolume')
    },
  },
]

/** The real time that a driver has to end a cancelled call. */
const ABORTED_RETRIES_MAX = 20
const ABORTED_RETRY_DELAY_MS = 100

async function repeatUntilOk(context: CheckContext, request: CreateRequest) {
  for (let retries = 0; ; retries++) {
    const outcome = await attempt(context.csi.controller.createVolume(request))
    if (outcome.code === 'ABORTED' && retries < ABORTED_RETRIES_MAX) await context.pause(ABORTED_RETRY_DELAY_MS)
    else {
      const { volume } = expectOk(outcome, 'CreateVolume repeated after a cancelled call')
      return volume ?? violate('CreateVolume returned no volume')
    }
  }
}
