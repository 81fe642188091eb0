// Checks ListVolumes, ControllerGetVolume and GetCapacity.
import { attempt, expectCode, expectOk } from '../calls/outcomes.ts'
import { type Check, type CheckContext, NotApplicable, violate } from '../check.ts'
import {
  atLeast,
  attach,
  classCapability,
  createRequest,
  createVolume,
  deleteVolume,
  detach,
  driverParameters,
  findListedEntry,
  listEntries,
  PAGES_MAX,
  UNKNOWN_ID,
} from './requests.ts'

const LIST_NEEDS = { controller: ['CREATE_DELETE_VOLUME', 'LIST_VOLUMES'] } as const
const LISTED_VOLUMES = 3

export const queryVolumesChecks: readonly Check[] = [
  {
    id: 'list-consistent',
    title: 'ListVolumes contains every created volume until it is deleted',
    rule: {
      section: 'ListVolumes; RPC Interactions: CreateVolume, DeleteVolume, ListVolumes',
      level: 'must',
      text: 'The list contains a volume after CreateVolume succeeded, with the size of CreateVolume, and no longer after DeleteVolume.',
    },
    needs: LIST_NEEDS,
    async run(context) {
      const created = [await createVolume(context), await createVolume(context)]
      const listedEntries = await listEntries(context)
      for (const { volumeId, capacityBytes } of created) {
        const entries = listedEntries.filter(({ volume }) => volume?.volumeId === volumeId)
        if (entries.length !== 1) violate(`ListVolumes has the new volume ${volumeId} ${entries.length} times`)
        const listedBytes = entries[0]?.volume?.capacityBytes ?? 0n
        if (listedBytes !== 0n && capacityBytes !== 0n && listedBytes !== capacityBytes)
          violate(`CreateVolume reported ${capacityBytes} bytes for ${volumeId}, ListVolumes ${listedBytes}`)
      }
      for (const { volumeId } of created) await deleteVolume(context, volumeId)
      const remainingIds = new Set((await listEntries(context)).map(({ volume }) => volume?.volumeId))
      for (const { volumeId } of created)
        if (remainingIds.has(volumeId)) violate(`ListVolumes has the deleted volume ${volumeId}`)
    },
  },
  {
    id: 'list-pages',
    title: 'ListVolumes divides the list into pages',
    rule: {
      section: 'ListVolumes',
      level: 'must',
      text: 'A page has at most max_entries entries, and a token if more follow; the pages together have every volume once.',
    },
    needs: LIST_NEEDS,
    async run(context) {
      const created = new Set<string>()
      for (let count = 0; count < LISTED_VOLUMES; count++) created.add((await createVolume(context)).volumeId)
      const seen = new Set<string>()
      let startingToken = ''
      for (let page = 1; ; page++) {
        const request = { maxEntries: 1, startingToken }
        const response = expectOk(
          await attempt(context.csi.controller.listVolumes(request)),
          `page ${page} of ListVolumes`,
        )
        if (response.entries.length > 1)
          violate(`max_entries is 1, but page ${page} has ${response.entries.length} entries`)
        for (const { volume } of response.entries) {
          if (volume && seen.has(volume.volumeId) && created.has(volume.volumeId))
            violate(`volume ${volume.volumeId} is on two pages of an unchanged list`)
          seen.add(volume?.volumeId ?? '')
        }
        if (response.nextToken === '') break
        if (response.nextToken === startingToken) violate(`page ${page} has its own starting_token as next_token`)
        if (page >= PAGES_MAX) violate(`the list does not end after ${PAGES_MAX} pages`)
        startingToken = response.nextToken
      }
      const missing = [...created].find((volumeId) => !seen.has(volumeId))
      if (missing) violate(`volume ${missing} is on no page`)
    },
  },
  {
    id: 'list-invalid-token',
    title: 'ListVolumes rejects an invalid token',
    rule: {
      section: 'ListVolumes Errors',
      level: 'must',
      text: 'A starting_token that is not valid fails with ABORTED, so that the caller starts again.',
    },
    needs: { controller: ['LIST_VOLUMES'] },
    async run({ csi }) {
      const outcome = await attempt(csi.controller.listVolumes({ startingToken: 'stowage-verify-invalid-token' }))
      expectCode(outcome, 'ABORTED', 'ListVolumes with an invalid starting_token')
    },
  },
  {
    id: 'list-published-nodes',
    title: 'ListVolumes contains the nodes of published volumes',
    rule: {
      section: 'ListVolumes; ControllerGetCapabilities',
      level: 'must',
      text: 'With LIST_VOLUMES_PUBLISHED_NODES, an entry names the nodes to which the volume is published, and only those.',
    },
    needs: {
      controller: ['CREATE_DELETE_VOLUME', 'LIST_VOLUMES', 'LIST_VOLUMES_PUBLISHED_NODES', 'PUBLISH_UNPUBLISH_VOLUME'],
      node: [],
    },
    async run(context) {
      const { nodeInfo } = context
      const volume = await createVolume(context)
      const readNodes = async () => (await findListedEntry(context, volume.volumeId))?.status?.publishedNodeIds ?? []
      await attach(context, volume)
      const nodeIds = await readNodes()
      if (nodeIds.join() !== nodeInfo?.nodeId)
        violate(`the volume is published to ${nodeInfo?.nodeId}, ListVolumes has ${JSON.stringify(nodeIds)}`)
      await detach(context, volume.volumeId)
      const laterNodeIds = await readNodes()
      if (laterNodeIds.length > 0)
        violate(`the volume is published to no node, ListVolumes has ${JSON.stringify(laterNodeIds)}`)
    },
  },
  {
    id: 'get-volume',
    title: 'ControllerGetVolume returns the volume, and does not find an unknown one',
    rule: {
      section: 'ControllerGetVolume; ControllerGetVolume Errors',
      level: 'must',
      text: 'The response has the id and size of the volume; a volume that does not exist fails with NOT_FOUND.',
    },
    needs: { controller: ['CREATE_DELETE_VOLUME', 'GET_VOLUME'] },
    async run(context) {
      const { controller } = context.csi
      const { volumeId, capacityBytes } = await createVolume(context)
      const { volume } = expectOk(await attempt(controller.controllerGetVolume({ volumeId })), 'ControllerGetVolume')
      if (volume?.volumeId !== volumeId)
        violate(`ControllerGetVolume of ${volumeId} returned the volume ${JSON.stringify(volume?.volumeId)}`)
      if (volume.capacityBytes !== 0n && capacityBytes !== 0n && volume.capacityBytes !== capacityBytes)
        violate(`CreateVolume reported ${capacityBytes} bytes, ControllerGetVolume ${volume.capacityBytes}`)
      const outcome = await attempt(controller.controllerGetVolume({ volumeId: UNKNOWN_ID }))
      expectCode(outcome, 'NOT_FOUND', 'ControllerGetVolume of an unknown id')
    },
  },
  {
    id: 'capacity-plausible',
    title: 'GetCapacity returns plausible amounts',
    rule: {
      section: 'GetCapacity',
      level: 'must',
      text: 'Available capacity, maximum and minimum volume size are not negative, and the minimum is not above the maximum.',
    },
    needs: { controller: ['GET_CAPACITY'] },
    async run(context) {
      const { availableCapacity, maximumVolumeSize, minimumVolumeSize } = await readCapacity(context)
      if (availableCapacity < 0n) violate(`available_capacity is ${availableCapacity}`)
      if ((maximumVolumeSize ?? 0n) < 0n) violate(`maximum_volume_size is ${maximumVolumeSize}`)
      if ((minimumVolumeSize ?? 0n) < 0n) violate(`minimum_volume_size is ${minimumVolumeSize}`)
      if (maximumVolumeSize !== undefined && (minimumVolumeSize ?? 0n) > maximumVolumeSize)
        violate(`minimum_volume_size ${minimumVolumeSize} is above maximum_volume_size ${maximumVolumeSize}`)
    },
  },
  {
    id: 'capacity-maximum',
    title: 'CreateVolume rejects more than the maximum volume size of GetCapacity',
    rule: {
      section: 'GetCapacity',
      level: 'must',
      text: 'maximum_volume_size is the largest size that CreateVolume accepts with the same parameters; twice that size fails with OUT_OF_RANGE or RESOURCE_EXHAUSTED.',
    },
    needs: { controller: ['CREATE_DELETE_VOLUME', 'GET_CAPACITY'] },
    async run(context) {
      const { maximumVolumeSize } = await readCapacity(context)
      if (maximumVolumeSize === undefined || maximumVolumeSize <= 0n)
        throw new NotApplicable('GetCapacity returns no maximum_volume_size above 0')
      const capacityRange = atLeast(maximumVolumeSize * 2n)
      const outcome = await attempt(context.csi.controller.createVolume(createRequest(context, { capacityRange })))
      expectCode(
        outcome,
        ['OUT_OF_RANGE', 'RESOURCE_EXHAUSTED'],
        `CreateVolume with twice the maximum_volume_size of ${maximumVolumeSize} bytes`,
      )
    },
  },
  {
    id: 'capacity-unknown-topology',
    title: 'GetCapacity reports no capacity for a topology that does not exist',
    rule: {
      section: 'GetCapacity',
      level: 'should',
      text: 'The capacity is that of the requested topology; where no volume can be created, it is zero.',
    },
    needs: { controller: ['GET_CAPACITY'], node: [], plugin: ['VOLUME_ACCESSIBILITY_CONSTRAINTS'] },
    async run(context) {
      const keys = Object.keys(context.nodeInfo?.accessibleTopology?.segments ?? {})
      const segments = Object.fromEntries(keys.map((key) => [key, 'stowage-verify-nowhere']))
      const { availableCapacity } = await readCapacity(context, segments)
      if (availableCapacity !== 0n)
        violate(`${availableCapacity} bytes are available in a topology that does not exist`)
    },
  },
]

async function readCapacity(context: CheckContext, segments = context.nodeInfo?.accessibleTopology?.segments) {
  const request = {
    volumeCapabilities: [classCapability(context)],
    parameters: driverParameters(context),
    ...(segments ? { accessibleTopology: { segments } } : {}),
  }
  return expectOk(await attempt(context.csi.controller.getCapacity(request)), 'GetCapacity')
}
