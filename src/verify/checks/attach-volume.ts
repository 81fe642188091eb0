// Checks ControllerPublishVolume and ControllerUnpublishVolume.
import { attempt, expectCode, expectOk } from '../calls/outcomes.ts'
import { type Check, type CheckContext, violate } from '../check.ts'
import {
  attach,
  classCapability,
  controllerPublishRequest,
  createVolume,
  deleteVolume,
  detach,
  UNKNOWN_ID,
} from './requests.ts'

const NEEDS = { controller: ['CREATE_DELETE_VOLUME', 'PUBLISH_UNPUBLISH_VOLUME'], node: [] } as const
const nodeIdOf = ({ nodeInfo }: CheckContext) => nodeInfo?.nodeId ?? ''

export const attachVolumeChecks: readonly Check[] = [
  {
    id: 'attach-required-fields',
    title: 'ControllerPublishVolume rejects a request without volume id, node id or capability',
    rule: {
      section: 'Error Scheme; ControllerPublishVolume',
      level: 'must',
      text: 'A request without a required field fails with INVALID_ARGUMENT.',
    },
    needs: NEEDS,
    async run(context) {
      const { controller } = context.csi
      const volume = await createVolume(context)
      const request = controllerPublishRequest(context, volume, nodeIdOf(context))
      const incompleteRequests = {
        volume_id: { ...request, volumeId: '' },
        node_id: { ...request, nodeId: '' },
        volume_capability: { ...request, volumeCapability: undefined },
      }
      for (const [field, incomplete] of Object.entries(incompleteRequests))
        expectCode(
          await attempt(controller.controllerPublishVolume(incomplete)),
          'INVALID_ARGUMENT',
          `ControllerPublishVolume without ${field}`,
        )
    },
  },
  {
    id: 'attach-unknown-volume',
    title: 'ControllerPublishVolume of an unknown volume fails',
    rule: {
      section: 'ControllerPublishVolume Errors',
      level: 'must',
      text: 'A volume that does not exist fails with NOT_FOUND.',
    },
    needs: NEEDS,
    async run(context) {
      const request = {
        volumeId: UNKNOWN_ID,
        nodeId: nodeIdOf(context),
        volumeCapability: classCapability(context),
        secrets: { ...context.settings.secrets.ControllerPublishVolumeSecret },
      }
      const outcome = await attempt(context.csi.controller.controllerPublishVolume(request))
      expectCode(outcome, 'NOT_FOUND', 'ControllerPublishVolume of an unknown volume')
    },
  },
  {
    id: 'attach-unknown-node',
    title: 'ControllerPublishVolume to an unknown node fails',
    rule: {
      section: 'ControllerPublishVolume Errors',
      level: 'must',
      text: 'A node that does not exist fails with NOT_FOUND.',
    },
    needs: NEEDS,
    async run(context) {
      const volume = await createVolume(context)
      const outcome = await attempt(
        context.csi.controller.controllerPublishVolume(
          controllerPublishRequest(context, volume, 'stowage-verify-unknown-node'),
        ),
      )
      expectCode(outcome, 'NOT_FOUND', 'ControllerPublishVolume to an unknown node')
    },
  },
  {
    id: 'attach-idempotent',
    title: 'a repeated ControllerPublishVolume succeeds with the same context',
    rule: {
      section: 'ControllerPublishVolume',
      level: 'must',
      text: 'Volume and node are the idempotency key: a repeated request succeeds and returns the same publish context.',
    },
    needs: NEEDS,
    async run(context) {
      const volume = await createVolume(context)
      const [first, second] = [await attach(context, volume), await attach(context, volume)]
      const [firstText, secondText] = [first, second].map((map) => JSON.stringify(Object.entries(map).sort()))
      if (firstText !== secondText) violate(`publish_context changed from ${firstText} to ${secondText}`)
    },
  },
  {
    id: 'attach-incompatible',
    title: 'ControllerPublishVolume rejects another mode for a published volume',
    rule: {
      section: 'ControllerPublishVolume Errors',
      level: 'must',
      text: 'A volume that is published to the node with another readonly flag fails with ALREADY_EXISTS.',
    },
    needs: { ...NEEDS, controller: [...NEEDS.controller, 'PUBLISH_READONLY'] },
    async run(context) {
      const volume = await createVolume(context)
      await attach(context, volume)
      const request = { ...controllerPublishRequest(context, volume, nodeIdOf(context)), readonly: true }
      const outcome = await attempt(context.csi.controller.controllerPublishVolume(request))
      expectCode(
        outcome,
        'ALREADY_EXISTS',
        'ControllerPublishVolume with readonly of a volume that is published writable',
      )
    },
  },
  {
    id: 'attach-two-nodes',
    title: 'a volume for one node is not published to a second one',
    rule: {
      section: 'ControllerPublishVolume Errors',
      level: 'must',
      text: 'A volume without a MULTI_NODE capability that is published to another node fails with FAILED_PRECONDITION, and can be published there after it was unpublished.',
    },
    needs: { ...NEEDS, otherNode: true },
    async run(context) {
      const { csi, settings } = context
      const volume = await createVolume(context)
      await attach(context, volume)
      const request = controllerPublishRequest(context, volume, settings.otherNodeId ?? '')
      const outcome = await attempt(csi.controller.controllerPublishVolume(request))
      expectCode(
        outcome,
        'FAILED_PRECONDITION',
        'ControllerPublishVolume of a SINGLE_NODE_WRITER volume to a second node',
      )
      await detach(context, volume.volumeId)
      const nextOutcome = await attempt(csi.controller.controllerPublishVolume(request))
      expectOk(nextOutcome, 'ControllerPublishVolume to a second node after ControllerUnpublishVolume from the first')
    },
  },
  {
    id: 'attach-concurrent',
    title: 'concurrent ControllerPublishVolume calls for one volume publish it once',
    rule: {
      section: 'Concurrency',
      level: 'must',
      text: 'Each of several concurrent calls succeeds or fails with ABORTED; a later call succeeds.',
    },
    needs: NEEDS,
    async run(context) {
      const volume = await createVolume(context)
      const request = controllerPublishRequest(context, volume, nodeIdOf(context))
      const outcomes = await Promise.all(
        [1, 2, 3].map(() => attempt(context.csi.controller.controllerPublishVolume(request))),
      )
      for (const outcome of outcomes)
        expectCode(outcome, ['OK', 'ABORTED'], 'one of 3 concurrent ControllerPublishVolume calls')
      await attach(context, volume)
    },
  },
  {
    id: 'detach-required-fields',
    title: 'ControllerUnpublishVolume rejects a request without a volume id',
    rule: {
      section: 'Error Scheme; ControllerUnpublishVolume',
      level: 'must',
      text: 'A request without a required field fails with INVALID_ARGUMENT.',
    },
    needs: NEEDS,
    async run(context) {
      const outcome = await attempt(context.csi.controller.controllerUnpublishVolume({ nodeId: nodeIdOf(context) }))
      expectCode(outcome, 'INVALID_ARGUMENT', 'ControllerUnpublishVolume without a volume_id')
    },
  },
  {
    id: 'detach-idempotent',
    title: 'a repeated ControllerUnpublishVolume succeeds',
    rule: {
      section: 'ControllerUnpublishVolume',
      level: 'must',
      text: 'The call is idempotent: it succeeds if the volume is not published to the node.',
    },
    needs: NEEDS,
    async run(context) {
      const volume = await createVolume(context)
      await attach(context, volume)
      await detach(context, volume.volumeId)
      await detach(context, volume.volumeId)
    },
  },
  {
    id: 'detach-unknown-volume',
    title: 'ControllerUnpublishVolume of an unknown volume succeeds or does not find it',
    rule: {
      section: 'ControllerUnpublishVolume; ControllerUnpublishVolume Errors',
      level: 'must',
      text: 'If the volume does not exist, the call succeeds, or fails with NOT_FOUND if the driver cannot assume that it is detached.',
    },
    needs: NEEDS,
    async run(context) {
      const request = { volumeId: UNKNOWN_ID, nodeId: nodeIdOf(context) }
      const outcome = await attempt(context.csi.controller.controllerUnpublishVolume(request))
      expectCode(outcome, ['OK', 'NOT_FOUND'], 'ControllerUnpublishVolume of an unknown volume')
    },
  },
  {
    id: 'detach-all-nodes',
    title: 'ControllerUnpublishVolume without a node unpublishes from all nodes',
    rule: {
      section: 'ControllerUnpublishVolume',
      level: 'should',
      text: 'Without a node id, the volume is unpublished from every node, so that it can be deleted afterwards.',
    },
    needs: NEEDS,
    async run(context) {
      const { volumeId, ...volume } = await createVolume(context)
      await attach(context, { volumeId, ...volume })
      const outcome = await attempt(context.csi.controller.controllerUnpublishVolume({ volumeId }))
      expectOk(outcome, 'ControllerUnpublishVolume without a node_id')
      await deleteVolume(context, volumeId)
    },
  },
]
