// Checks ControllerExpandVolume, NodeExpandVolume and ControllerModifyVolume.
import { attempt, expectCode, expectOk } from '../calls/outcomes.ts'
import { type Check, type CheckContext, NotApplicable, violate } from '../check.ts'
import {
  atLeast,
  classCapability,
  createVolume,
  findListedEntry,
  IMPOSSIBLE_BYTES,
  mountVolume,
  type NodeVolume,
  type Range,
  requireOnlineExpansion,
  UNKNOWN_ID,
} from './requests.ts'

const EXPAND_NEEDS = { controller: ['CREATE_DELETE_VOLUME', 'EXPAND_VOLUME'] } as const
const NODE_EXPAND_NEEDS = { controller: ['CREATE_DELETE_VOLUME'], node: ['EXPAND_VOLUME'] } as const
const MODIFY_NEEDS = { controller: ['CREATE_DELETE_VOLUME', 'MODIFY_VOLUME'] } as const

export const changeVolumeChecks: readonly Check[] = [
  {
    id: 'expand-required-fields',
    title: 'ControllerExpandVolume rejects a request without volume id or capacity range',
    rule: {
      section: 'Error Scheme; ControllerExpandVolume',
      level: 'must',
      text: 'A request without a required field fails with INVALID_ARGUMENT.',
    },
    needs: EXPAND_NEEDS,
    async run(context) {
      const { controller } = context.csi
      const { volumeId } = await createVolume(context)
      const capacityRange = atLeast(context.settings.expandedBytes)
      expectCode(
        await attempt(controller.controllerExpandVolume({ capacityRange })),
        'INVALID_ARGUMENT',
        'ControllerExpandVolume without a volume_id',
      )
      expectCode(
        await attempt(controller.controllerExpandVolume({ volumeId })),
        'INVALID_ARGUMENT',
        'ControllerExpandVolume without a capacity_range',
      )
    },
  },
  {
    id: 'expand-unknown',
    title: 'ControllerExpandVolume of an unknown volume fails',
    rule: {
      section: 'ControllerExpandVolume Errors',
      level: 'must',
      text: 'A volume that does not exist fails with NOT_FOUND.',
    },
    needs: EXPAND_NEEDS,
    async run(context) {
      const outcome = await expand(context, UNKNOWN_ID, atLeast(context.settings.expandedBytes))
      expectCode(outcome, 'NOT_FOUND', 'ControllerExpandVolume of an unknown id')
    },
  },
  {
    id: 'expand-volume',
    title: 'ControllerExpandVolume expands the volume, and a repeated call agrees',
    rule: {
      section: 'ControllerExpandVolume',
      level: 'must',
      text: 'The new size is at least required_bytes. The call is idempotent: a repeated call succeeds with the same size, which ListVolumes also reports.',
    },
    needs: EXPAND_NEEDS,
    async run(context) {
      const { expandedBytes } = context.settings
      const { volumeId } = await createVolume(context)
      const first = expectOk(await expand(context, volumeId, atLeast(expandedBytes)), 'ControllerExpandVolume')
      if (first.capacityBytes < BigInt(expandedBytes))
        violate(`required_bytes is ${expandedBytes}, but capacity_bytes is ${first.capacityBytes}`)
      const second = expectOk(
        await expand(context, volumeId, atLeast(expandedBytes)),
        'the same ControllerExpandVolume',
      )
      if (second.capacityBytes !== first.capacityBytes)
        violate(`the same call reported ${first.capacityBytes} and then ${second.capacityBytes} bytes`)
      const listedBytes = await readListedBytes(context, volumeId)
      if (listedBytes !== undefined && listedBytes !== first.capacityBytes)
        violate(`ControllerExpandVolume reported ${first.capacityBytes} bytes, ListVolumes ${listedBytes}`)
    },
  },
  {
    id: 'expand-to-smaller',
    title: 'ControllerExpandVolume of a volume that is large enough succeeds',
    rule: {
      section: 'ControllerExpandVolume',
      level: 'should',
      text: 'If the volume already has the required size, the call succeeds and reports the size of the volume; a volume never shrinks.',
    },
    needs: EXPAND_NEEDS,
    async run(context) {
      const { volumeId, capacityBytes } = await createVolume(context)
      const outcome = await expand(context, volumeId, atLeast(BigInt(context.settings.sizeBytes) / 2n))
      const response = expectOk(outcome, 'ControllerExpandVolume with less than the size of the volume')
      if (response.capacityBytes < capacityBytes)
        violate(`the volume has ${capacityBytes} bytes, ControllerExpandVolume reported ${response.capacityBytes}`)
    },
  },
  {
    id: 'expand-impossible-size',
    title: 'ControllerExpandVolume rejects a size beyond all storage, and changes nothing',
    rule: {
      section: 'ControllerExpandVolume Errors',
      level: 'must',
      text: 'A size that the driver cannot provide fails with OUT_OF_RANGE or RESOURCE_EXHAUSTED, and the volume keeps its size.',
    },
    needs: EXPAND_NEEDS,
    async run(context) {
      const { volumeId, capacityBytes } = await createVolume(context)
      const outcome = await expand(context, volumeId, atLeast(IMPOSSIBLE_BYTES))
      expectCode(outcome, ['OUT_OF_RANGE', 'RESOURCE_EXHAUSTED'], `ControllerExpandVolume to ${IMPOSSIBLE_BYTES} bytes`)
      const listedBytes = await readListedBytes(context, volumeId)
      if (listedBytes !== undefined && capacityBytes !== 0n && listedBytes !== capacityBytes)
        violate(`a rejected expansion changed the size from ${capacityBytes} to ${listedBytes} bytes`)
    },
  },
  {
    id: 'expand-limit-below-required',
    title: 'ControllerExpandVolume rejects a limit below the required size',
    rule: {
      section: 'ControllerExpandVolume Errors; CapacityRange',
      level: 'must',
      text: 'A volume has at least required_bytes and at most limit_bytes. No size satisfies a range with required above limit, so it fails with OUT_OF_RANGE or INVALID_ARGUMENT.',
    },
    needs: EXPAND_NEEDS,
    async run(context) {
      const { sizeBytes, expandedBytes } = context.settings
      const { volumeId } = await createVolume(context)
      const limitBytes = BigInt(Math.floor((sizeBytes + expandedBytes) / 2))
      const outcome = await expand(context, volumeId, { requiredBytes: BigInt(expandedBytes), limitBytes })
      expectCode(
        outcome,
        ['OUT_OF_RANGE', 'INVALID_ARGUMENT'],
        `ControllerExpandVolume with required_bytes ${expandedBytes} and limit_bytes ${limitBytes}`,
      )
    },
  },
  {
    id: 'expand-in-use',
    title: 'a driver with offline expansion does not expand a published volume',
    rule: {
      section: 'ControllerExpandVolume Errors; GetPluginCapabilities',
      level: 'must',
      text: 'A driver that advertises only OFFLINE expansion fails with FAILED_PRECONDITION while the volume is published.',
    },
    needs: { ...EXPAND_NEEDS, node: [], onlyOfflineExpansion: true },
    async run(context) {
      const { volume } = await mountVolume(context)
      const outcome = await expand(context, volume.volumeId, atLeast(context.settings.expandedBytes))
      expectCode(outcome, 'FAILED_PRECONDITION', 'ControllerExpandVolume of a published volume')
    },
  },
  {
    id: 'expand-capability-consistent',
    title: 'expansion capabilities of plugin and services agree',
    rule: {
      section: 'GetPluginCapabilities, VolumeExpansion',
      level: 'must',
      text: 'A driver that advertises ONLINE expansion has EXPAND_VOLUME in the controller service, the node service or both; one that advertises OFFLINE expansion has it in the controller service.',
    },
    needs: { controller: [], node: [] },
    async run({ profile }) {
      const isImplemented = profile.controller.has('EXPAND_VOLUME') || profile.node.has('EXPAND_VOLUME')
      if (profile.expansion.size > 0 && !isImplemented)
        violate(
          `the driver advertises ${[...profile.expansion].join(', ')} expansion, but no service has EXPAND_VOLUME`,
        )
      if (profile.expansion.has('OFFLINE') && !profile.controller.has('EXPAND_VOLUME'))
        violate('the driver advertises OFFLINE expansion, but the controller service does not have EXPAND_VOLUME')
    },
  },
  {
    id: 'node-expand-required-fields',
    title: 'NodeExpandVolume rejects a request without volume id or path',
    rule: {
      section: 'Error Scheme; NodeExpandVolume',
      level: 'must',
      text: 'A request without a required field fails with INVALID_ARGUMENT.',
    },
    needs: NODE_EXPAND_NEEDS,
    async run(context) {
      const { node } = context.csi
      expectCode(
        await attempt(node.nodeExpandVolume({ volumePath: await context.makeDirectory() })),
        'INVALID_ARGUMENT',
        'NodeExpandVolume without a volume_id',
      )
      const { volumeId } = await createVolume(context)
      expectCode(
        await attempt(node.nodeExpandVolume({ volumeId })),
        'INVALID_ARGUMENT',
        'NodeExpandVolume without a volume_path',
      )
    },
  },
  {
    id: 'node-expand-unknown',
    title: 'NodeExpandVolume of an unknown volume fails',
    rule: {
      section: 'NodeExpandVolume Errors',
      level: 'must',
      text: 'A volume that does not exist fails with NOT_FOUND.',
    },
    needs: NODE_EXPAND_NEEDS,
    async run(context) {
      const request = { volumeId: UNKNOWN_ID, volumePath: await context.makeDirectory() }
      const outcome = await attempt(context.csi.node.nodeExpandVolume(request))
      expectCode(outcome, 'NOT_FOUND', 'NodeExpandVolume of an unknown id')
    },
  },
  {
    id: 'node-expand-idempotent',
    title: 'NodeExpandVolume expands a published volume, and a repeated call succeeds',
    rule: {
      section: 'NodeExpandVolume',
      level: 'must',
      text: 'After the controller expanded the volume, the node expands it to at least that size; repeated, the call succeeds.',
    },
    needs: { controller: ['CREATE_DELETE_VOLUME', 'EXPAND_VOLUME'], node: ['EXPAND_VOLUME'] },
    async run(context) {
      const { settings } = context
      const range = atLeast(settings.expandedBytes)
      requireOnlineExpansion(context)
      const nodeVolume = await mountVolume(context)
      const { nodeExpansionRequired } = expectOk(
        await expand(context, nodeVolume.volume.volumeId, range),
        'ControllerExpandVolume of a published volume',
      )
      if (!nodeExpansionRequired) throw new NotApplicable('ControllerExpandVolume requires no expansion on the node')
      for (const situation of ['NodeExpandVolume', 'the same NodeExpandVolume']) {
        const { capacityBytes } = expectOk(await expandOnNode(context, nodeVolume, range), situation)
        if (capacityBytes !== 0n && capacityBytes < BigInt(settings.expandedBytes))
          violate(`required_bytes is ${settings.expandedBytes}, but ${situation} reported ${capacityBytes} bytes`)
      }
    },
  },
  {
    id: 'modify-required-fields',
    title: 'ControllerModifyVolume rejects a request without a volume id',
    rule: {
      section: 'Error Scheme; ControllerModifyVolume',
      level: 'must',
      text: 'A request without a required field fails with INVALID_ARGUMENT.',
    },
    needs: MODIFY_NEEDS,
    async run({ csi, settings }) {
      const outcome = await attempt(
        csi.controller.controllerModifyVolume({ mutableParameters: settings.attributes ?? {} }),
      )
      expectCode(outcome, 'INVALID_ARGUMENT', 'ControllerModifyVolume without a volume_id')
    },
  },
  {
    id: 'modify-unknown',
    title: 'ControllerModifyVolume of an unknown volume fails',
    rule: {
      section: 'ControllerModifyVolume Errors',
      level: 'must',
      text: 'A volume that does not exist fails with NOT_FOUND.',
    },
    needs: { ...MODIFY_NEEDS, attributes: true },
    async run(context) {
      const outcome = await modify(context, UNKNOWN_ID, context.settings.attributes ?? {})
      expectCode(outcome, 'NOT_FOUND', 'ControllerModifyVolume of an unknown id')
    },
  },
  {
    id: 'modify-unknown-key',
    title: 'ControllerModifyVolume rejects an unknown parameter',
    rule: {
      section: 'ControllerModifyVolume Errors',
      level: 'must',
      text: 'A key that is not supported fails with INVALID_ARGUMENT.',
    },
    needs: MODIFY_NEEDS,
    async run(context) {
      const { volumeId } = await createVolume(context)
      const outcome = await modify(context, volumeId, { 'stowage-verify-unknown-key': 'value' })
      expectCode(outcome, 'INVALID_ARGUMENT', 'ControllerModifyVolume with an unknown key')
    },
  },
  {
    id: 'modify-idempotent',
    title: 'ControllerModifyVolume succeeds, and so does a repeated call',
    rule: {
      section: 'ControllerModifyVolume',
      level: 'must',
      text: 'The call is idempotent: a repeated call with the same parameters succeeds.',
    },
    needs: { ...MODIFY_NEEDS, attributes: true },
    async run(context) {
      const { volumeId } = await createVolume(context)
      const parameters = context.settings.attributes ?? {}
      expectOk(await modify(context, volumeId, parameters), 'ControllerModifyVolume')
      expectOk(await modify(context, volumeId, parameters), 'the same ControllerModifyVolume')
    },
  },
  {
    id: 'modify-keeps-other-parameters',
    title: 'a volume that was created with attributes can be modified with the same values',
    rule: {
      section: 'CreateVolume, mutable_parameters; ControllerModifyVolume',
      level: 'must',
      text: 'Mutable parameters may also be set at creation; modifying a volume with its current values succeeds.',
    },
    needs: { ...MODIFY_NEEDS, attributes: true },
    async run(context) {
      const mutableParameters = { ...context.settings.attributes }
      const { volumeId } = await createVolume(context, { mutableParameters })
      expectOk(
        await modify(context, volumeId, mutableParameters),
        'ControllerModifyVolume with the values of CreateVolume',
      )
    },
  },
]

const expand = (context: CheckContext, volumeId: string, capacityRange: Range) =>
  attempt(
    context.csi.controller.controllerExpandVolume({
      volumeId,
      capacityRange,
      volumeCapability: classCapability(context),
      secrets: { ...context.settings.secrets.ControllerExpandVolumeSecret },
    }),
  )

const expandOnNode = ({ csi }: CheckContext, nodeVolume: NodeVolume, capacityRange: Range) =>
  attempt(
    csi.node.nodeExpandVolume({
      volumeId: nodeVolume.volume.volumeId,
      volumePath: nodeVolume.targetPath,
      stagingTargetPath: nodeVolume.stagingPath,
      volumeCapability: nodeVolume.capability,
      capacityRange,
    }),
  )

const modify = ({ csi, settings }: CheckContext, volumeId: string, parameters: Readonly<Record<string, string>>) =>
  attempt(
    csi.controller.controllerModifyVolume({
      volumeId,
      mutableParameters: { ...parameters },
      secrets: { ...settings.secrets.ControllerModifyVolumeSecret },
    }),
  )

/** Returns undefined if the driver cannot list, or its list has no size of the volume. */
async function readListedBytes(context: CheckContext, volumeId: string): Promise<bigint | undefined> {
  const entry = await findListedEntry(context, volumeId)
  return entry?.volume?.capacityBytes || undefined
}
