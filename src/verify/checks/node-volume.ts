// Checks the Node service: staging, publishing and stats.
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { VolumeCapability_AccessMode_Mode as Mode, VolumeUsage_Unit as Unit } from '../../csi/gen/csi_pb.js'
import { attempt, expectCode, expectOk } from '../calls/outcomes.ts'
import { type Check, violate } from '../check.ts'
import {
  classCapability,
  mountVolume,
  nodePublishRequest,
  prepareNodeVolume,
  publish,
  stage,
  stageRequest,
  UNKNOWN_ID,
  unmountVolume,
  unpublish,
  unstage,
} from './requests.ts'

const STAGE_NEEDS = { controller: ['CREATE_DELETE_VOLUME'], node: ['STAGE_UNSTAGE_VOLUME'] } as const
const NEEDS = { controller: ['CREATE_DELETE_VOLUME'], node: [] } as const
const STATS_NEEDS = { controller: ['CREATE_DELETE_VOLUME'], node: ['GET_VOLUME_STATS'] } as const
const MISSING_FIELD = 'A request without a required field fails with INVALID_ARGUMENT.'

export const nodeVolumeChecks: readonly Check[] = [
  {
    id: 'stage-required-fields',
    title: 'NodeStageVolume rejects a request without volume id, path or capability',
    rule: { section: 'Error Scheme; NodeStageVolume', level: 'must', text: MISSING_FIELD },
    needs: STAGE_NEEDS,
    async run(context) {
      const request = stageRequest(context, await prepareNodeVolume(context))
      const incompleteRequests = {
        volume_id: { ...request, volumeId: '' },
        staging_target_path: { ...request, stagingTargetPath: '' },
        volume_capability: { ...request, volumeCapability: undefined },
      }
      for (const [field, incomplete] of Object.entries(incompleteRequests))
        expectCode(
          await attempt(context.csi.node.nodeStageVolume(incomplete)),
          'INVALID_ARGUMENT',
          `NodeStageVolume without ${field}`,
        )
    },
  },
  {
    id: 'stage-unknown',
    title: 'NodeStageVolume of an unknown volume fails',
    rule: {
      section: 'NodeStageVolume Errors',
      level: 'must',
      text: 'A volume that does not exist fails with NOT_FOUND.',
    },
    needs: STAGE_NEEDS,
    async run(context) {
      const request = {
        volumeId: UNKNOWN_ID,
        stagingTargetPath: await context.makeDirectory(),
        volumeCapability: classCapability(context),
        secrets: { ...context.settings.secrets.NodeStageVolumeSecret },
      }
      const outcome = await attempt(context.csi.node.nodeStageVolume(request))
      expectCode(outcome, 'NOT_FOUND', 'NodeStageVolume of an unknown id')
    },
  },
  {
    id: 'stage-idempotent',
    title: 'a repeated NodeStageVolume succeeds, even while the volume is published',
    rule: {
      section: 'NodeStageVolume',
      level: 'must',
      text: 'The call is idempotent: a volume that is staged at the path with the same capability is staged again successfully.',
    },
    needs: STAGE_NEEDS,
    async run(context) {
      const nodeVolume = await prepareNodeVolume(context)
      await stage(context, nodeVolume)
      await stage(context, nodeVolume)
      await publish(context, nodeVolume)
      await stage(context, nodeVolume)
    },
  },
  {
    id: 'stage-concurrent',
    title: 'concurrent NodeStageVolume calls for one volume stage it once',
    rule: {
      section: 'Concurrency; NodeStageVolume',
      level: 'must',
      text: 'Each of several concurrent calls succeeds or fails with ABORTED; a later call succeeds, and one NodeUnstageVolume undoes all.',
    },
    needs: STAGE_NEEDS,
    async run(context) {
      const nodeVolume = await prepareNodeVolume(context)
      const request = stageRequest(context, nodeVolume)
      const outcomes = await Promise.all([1, 2, 3].map(() => attempt(context.csi.node.nodeStageVolume(request))))
      for (const outcome of outcomes)
        expectCode(outcome, ['OK', 'ABORTED'], 'one of 3 concurrent NodeStageVolume calls')
      await stage(context, nodeVolume)
      await unstage(context, nodeVolume)
    },
  },
  {
    id: 'unstage-required-fields',
    title: 'NodeUnstageVolume rejects a request without volume id or path',
    rule: { section: 'Error Scheme; NodeUnstageVolume', level: 'must', text: MISSING_FIELD },
    needs: STAGE_NEEDS,
    async run({ csi: { node }, makeDirectory }) {
      expectCode(
        await attempt(node.nodeUnstageVolume({ stagingTargetPath: await makeDirectory() })),
        'INVALID_ARGUMENT',
        'NodeUnstageVolume without a volume_id',
      )
      expectCode(
        await attempt(node.nodeUnstageVolume({ volumeId: UNKNOWN_ID })),
        'INVALID_ARGUMENT',
        'NodeUnstageVolume without a staging_target_path',
      )
    },
  },
  {
    id: 'unstage-idempotent',
    title: 'a repeated NodeUnstageVolume succeeds',
    rule: {
      section: 'NodeUnstageVolume',
      level: 'must',
      text: 'The call is idempotent: a volume that is not staged at the path is unstaged successfully.',
    },
    needs: STAGE_NEEDS,
    async run(context) {
      const nodeVolume = await prepareNodeVolume(context)
      await stage(context, nodeVolume)
      await unstage(context, nodeVolume)
      await unstage(context, nodeVolume)
    },
  },
  {
    id: 'publish-required-fields',
    title: 'NodePublishVolume rejects a request without volume id, target or capability',
    rule: { section: 'Error Scheme; NodePublishVolume', level: 'must', text: MISSING_FIELD },
    needs: NEEDS,
    async run(context) {
      const nodeVolume = await prepareNodeVolume(context)
      await stage(context, nodeVolume)
      const request = nodePublishRequest(context, nodeVolume)
      const incompleteRequests = {
        volume_id: { ...request, volumeId: '' },
        target_path: { ...request, targetPath: '' },
        volume_capability: { ...request, volumeCapability: undefined },
      }
      for (const [field, incomplete] of Object.entries(incompleteRequests))
        expectCode(
          await attempt(context.csi.node.nodePublishVolume(incomplete)),
          'INVALID_ARGUMENT',
          `NodePublishVolume without ${field}`,
        )
    },
  },
  {
    id: 'publish-unknown',
    title: 'NodePublishVolume of an unknown volume fails',
    rule: {
      section: 'NodePublishVolume Errors',
      level: 'must',
      text: 'A volume that does not exist fails with NOT_FOUND.',
    },
    needs: NEEDS,
    async run(context) {
      const request = {
        volumeId: UNKNOWN_ID,
        stagingTargetPath: await context.makeDirectory(),
        targetPath: join(await context.makeDirectory(), 'mount'),
        volumeCapability: classCapability(context),
        secrets: { ...context.settings.secrets.NodePublishVolumeSecret },
      }
      const outcome = await attempt(context.csi.node.nodePublishVolume(request))
      expectCode(outcome, 'NOT_FOUND', 'NodePublishVolume of an unknown id')
    },
  },
  {
    id: 'publish-without-staging-path',
    title: 'NodePublishVolume without a staging path fails if the driver stages',
    rule: {
      section: 'NodePublishVolume Errors',
      level: 'must',
      text: 'With STAGE_UNSTAGE_VOLUME, a request without staging_target_path fails with FAILED_PRECONDITION.',
    },
    needs: STAGE_NEEDS,
    async run(context) {
      const nodeVolume = await prepareNodeVolume(context)
      await stage(context, nodeVolume)
      const request = { ...nodePublishRequest(context, nodeVolume), stagingTargetPath: '' }
      const outcome = await attempt(context.csi.node.nodePublishVolume(request))
      // A missing field is also an invalid request.
      expectCode(outcome, ['FAILED_PRECONDITION', 'INVALID_ARGUMENT'], 'NodePublishVolume without staging_target_path')
    },
  },
  {
    id: 'publish-idempotent',
    title: 'a repeated NodePublishVolume succeeds',
    rule: {
      section: 'NodePublishVolume',
      level: 'must',
      text: 'The call is idempotent: the same target with the same arguments succeeds, and one NodeUnpublishVolume undoes it.',
    },
    needs: NEEDS,
    async run(context) {
      const nodeVolume = await mountVolume(context)
      await publish(context, nodeVolume)
      await unpublish(context, nodeVolume)
      if (await exists(nodeVolume.targetPath))
        violate('after two NodePublishVolume calls and one NodeUnpublishVolume, the target still exists')
    },
  },
  {
    id: 'publish-target',
    title: 'NodePublishVolume creates the target, NodeUnpublishVolume removes it',
    rule: {
      section: 'NodePublishVolume; NodeUnpublishVolume',
      level: 'must',
      text: 'The caller creates only the parent directory. The driver creates the target path, and deletes it when it unpublishes.',
    },
    needs: NEEDS,
    async run(context) {
      const nodeVolume = await mountVolume(context)
      if (!(await exists(nodeVolume.targetPath)))
        violate(`${nodeVolume.targetPath} does not exist after NodePublishVolume`)
      await unpublish(context, nodeVolume)
      if (await exists(nodeVolume.targetPath))
        violate(`${nodeVolume.targetPath} still exists after NodeUnpublishVolume`)
    },
  },
  {
    id: 'publish-incompatible',
    title: 'NodePublishVolume rejects another mode at the same target',
    rule: {
      section: 'NodePublishVolume Errors',
      level: 'must',
      text: 'A volume that is published at the target with another readonly flag fails with ALREADY_EXISTS, or with FAILED_PRECONDITION if the driver does not support that flag at all.',
    },
    needs: NEEDS,
    async run(context) {
      const nodeVolume = await mountVolume(context)
      const request = { ...nodePublishRequest(context, nodeVolume), readonly: true }
      const outcome = await attempt(context.csi.node.nodePublishVolume(request))
      expectCode(
        outcome,
        ['ALREADY_EXISTS', 'FAILED_PRECONDITION'],
        'NodePublishVolume with readonly at a target that is published writable',
      )
    },
  },
  {
    id: 'publish-single-writer',
    title: 'a volume for a single writer is not published at a second target',
    rule: {
      section: 'NodePublishVolume; VolumeCapability, AccessMode',
      level: 'must',
      text: 'A SINGLE_NODE_SINGLE_WRITER volume has one writer on one node: a second target fails with FAILED_PRECONDITION.',
    },
    needs: { ...NEEDS, node: ['SINGLE_NODE_MULTI_WRITER'] },
    async run(context) {
      const volumeCapabilities = [classCapability(context, Mode.SINGLE_NODE_SINGLE_WRITER)]
      const nodeVolume = await mountVolume(context, { volumeCapabilities })
      const targetPath = join(await context.makeDirectory(), 'mount')
      const request = { ...nodePublishRequest(context, nodeVolume), targetPath }
      const outcome = await attempt(context.csi.node.nodePublishVolume(request))
      expectCode(
        outcome,
        'FAILED_PRECONDITION',
        'NodePublishVolume of a SINGLE_NODE_SINGLE_WRITER volume at a second target',
      )
    },
  },
  {
    id: 'publish-concurrent',
    title: 'concurrent NodePublishVolume calls for one target publish it once',
    rule: {
      section: 'Concurrency; NodePublishVolume',
      level: 'must',
      text: 'Each of several concurrent calls succeeds or fails with ABORTED; a later call succeeds, and one NodeUnpublishVolume undoes all.',
    },
    needs: NEEDS,
    async run(context) {
      const nodeVolume = await prepareNodeVolume(context)
      await stage(context, nodeVolume)
      const request = nodePublishRequest(context, nodeVolume)
      const outcomes = await Promise.all([1, 2, 3].map(() => attempt(context.csi.node.nodePublishVolume(request))))
      for (const outcome of outcomes)
        expectCode(outcome, ['OK', 'ABORTED'], 'one of 3 concurrent NodePublishVolume calls')
      await publish(context, nodeVolume)
      await unmountVolume(context, nodeVolume)
      if (await exists(nodeVolume.targetPath)) violate('the target still exists after NodeUnpublishVolume')
    },
  },
  {
    id: 'unpublish-required-fields',
    title: 'NodeUnpublishVolume rejects a request without volume id or target',
    rule: { section: 'Error Scheme; NodeUnpublishVolume', level: 'must', text: MISSING_FIELD },
    needs: { node: [] },
    async run({ csi: { node }, makeDirectory }) {
      expectCode(
        await attempt(node.nodeUnpublishVolume({ targetPath: await makeDirectory() })),
        'INVALID_ARGUMENT',
        'NodeUnpublishVolume without a volume_id',
      )
      expectCode(
        await attempt(node.nodeUnpublishVolume({ volumeId: UNKNOWN_ID })),
        'INVALID_ARGUMENT',
        'NodeUnpublishVolume without a target_path',
      )
    },
  },
  {
    id: 'unpublish-idempotent',
    title: 'a repeated NodeUnpublishVolume succeeds',
    rule: {
      section: 'NodeUnpublishVolume',
      level: 'must',
      text: 'The call is idempotent: a volume that is not published at the target is unpublished successfully.',
    },
    needs: NEEDS,
    async run(context) {
      const nodeVolume = await mountVolume(context)
      await unpublish(context, nodeVolume)
      await unpublish(context, nodeVolume)
    },
  },
  {
    id: 'stats-required-fields',
    title: 'NodeGetVolumeStats rejects a request without volume id or path',
    rule: { section: 'Error Scheme; NodeGetVolumeStats', level: 'must', text: MISSING_FIELD },
    needs: STATS_NEEDS,
    async run(context) {
      const { node } = context.csi
      const mounted = await mountVolume(context)
      expectCode(
        await attempt(node.nodeGetVolumeStats({ volumePath: mounted.targetPath })),
        'INVALID_ARGUMENT',
        'NodeGetVolumeStats without a volume_id',
      )
      expectCode(
        await attempt(node.nodeGetVolumeStats({ volumeId: mounted.volume.volumeId })),
        'INVALID_ARGUMENT',
        'NodeGetVolumeStats without a volume_path',
      )
    },
  },
  {
    id: 'stats-not-found',
    title: 'NodeGetVolumeStats of an unknown volume, or at another path, fails',
    rule: {
      section: 'NodeGetVolumeStats Errors',
      level: 'must',
      text: 'A volume that does not exist, or is not at the path, fails with NOT_FOUND.',
    },
    needs: STATS_NEEDS,
    async run(context) {
      const { node } = context.csi
      const { volume, targetPath } = await mountVolume(context)
      expectCode(
        await attempt(node.nodeGetVolumeStats({ volumeId: UNKNOWN_ID, volumePath: targetPath })),
        'NOT_FOUND',
        'NodeGetVolumeStats of an unknown id',
      )
      const volumePath = join(await context.makeDirectory(), 'missing')
      expectCode(
        await attempt(node.nodeGetVolumeStats({ volumeId: volume.volumeId, volumePath })),
        'NOT_FOUND',
        'NodeGetVolumeStats at a path without the volume',
      )
    },
  },
  {
    id: 'stats-plausible',
    title: 'NodeGetVolumeStats returns plausible amounts',
    rule: {
      section: 'NodeGetVolumeStats',
      level: 'must',
      text: 'A usage has a unit and a total; used and available are not negative, and neither is above the total.',
    },
    needs: STATS_NEEDS,
    async run(context) {
      const { volume, targetPath } = await mountVolume(context)
      const request = { volumeId: volume.volumeId, volumePath: targetPath }
      const { usage } = expectOk(await attempt(context.csi.node.nodeGetVolumeStats(request)), 'NodeGetVolumeStats')
      for (const { unit, total, used, available } of usage) {
        const text = `${Unit[unit]}: total ${total}, used ${used}, available ${available}`
        if (unit === Unit.UNKNOWN) violate(`a usage has no unit (${text})`)
        if (total < 0n || used < 0n || available < 0n) violate(`a usage is negative (${text})`)
        if (used > total || available > total) violate(`a part of the usage is above its total (${text})`)
      }
    },
  },
]

const exists = async (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )
