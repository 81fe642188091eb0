// Checks DeleteVolume and ValidateVolumeCapabilities.
import { attempt, expectCode, expectOk } from '../calls/outcomes.ts'
import { type Check, violate } from '../check.ts'
import {
  classCapability,
  createRequest,
  createVolume,
  deleteVolume,
  driverParameters,
  mountVolume,
  sendCreateRequest,
  UNKNOWN_ID,
} from './requests.ts'

const NEEDS = { controller: ['CREATE_DELETE_VOLUME'] } as const

export const deleteVolumeChecks: readonly Check[] = [
  {
    id: 'delete-required-fields',
    title: 'DeleteVolume rejects a request without a volume id',
    rule: {
      section: 'Error Scheme; DeleteVolume',
      level: 'must',
      text: 'A request without a required field fails with INVALID_ARGUMENT.',
    },
    needs: NEEDS,
    async run({ csi }) {
      expectCode(await attempt(csi.controller.deleteVolume({})), 'INVALID_ARGUMENT', 'DeleteVolume without a volume_id')
    },
  },
  {
    id: 'delete-unknown',
    title: 'DeleteVolume of an unknown volume succeeds',
    rule: {
      section: 'DeleteVolume',
      level: 'must',
      text: 'The call succeeds if the volume does not exist or has already been deleted.',
    },
    needs: NEEDS,
    async run(context) {
      const outcome = await attempt(context.csi.controller.deleteVolume({ volumeId: UNKNOWN_ID }))
      expectOk(outcome, 'DeleteVolume of an unknown id')
    },
  },
  {
    id: 'delete-idempotent',
    title: 'a repeated DeleteVolume succeeds',
    rule: {
      section: 'DeleteVolume',
      level: 'must',
      text: 'The call is idempotent: deleting a deleted volume succeeds.',
    },
    needs: NEEDS,
    async run(context) {
      const { volumeId } = await createVolume(context)
      await deleteVolume(context, volumeId)
      const outcome = await attempt(context.csi.controller.deleteVolume({ volumeId }))
      expectOk(outcome, 'DeleteVolume of a deleted volume')
    },
  },
  {
    id: 'delete-concurrent',
    title: 'concurrent DeleteVolume calls for one volume delete it',
    rule: {
      section: 'Concurrency; DeleteVolume',
      level: 'must',
      text: 'Each of several concurrent calls succeeds or fails with ABORTED; a later call succeeds.',
    },
    needs: NEEDS,
    async run(context) {
      const { volumeId } = await createVolume(context)
      const { controller } = context.csi
      const outcomes = await Promise.all([1, 2, 3].map(() => attempt(controller.deleteVolume({ volumeId }))))
      for (const outcome of outcomes) expectCode(outcome, ['OK', 'ABORTED'], 'one of 3 concurrent DeleteVolume calls')
      expectOk(await attempt(controller.deleteVolume({ volumeId })), 'DeleteVolume after concurrent calls')
    },
  },
  {
    id: 'delete-removes',
    title: 'a deleted volume no longer exists',
    rule: {
      section: 'DeleteVolume; ValidateVolumeCapabilities Errors',
      level: 'must',
      text: 'After DeleteVolume succeeded, calls for the id fail with NOT_FOUND, lists omit it, and its name can be used again.',
    },
    needs: NEEDS,
    async run(context) {
      const { csi, profile } = context
      const request = createRequest(context)
      const { volumeId } = await sendCreateRequest(context, request, 'CreateVolume')
      await deleteVolume(context, volumeId)
      const validation = { volumeId, volumeCapabilities: [classCapability(context)] }
      const outcome = await attempt(csi.controller.validateVolumeCapabilities(validation))
      expectCode(outcome, 'NOT_FOUND', 'ValidateVolumeCapabilities of a deleted volume')
      if (profile.controller.has('LIST_VOLUMES')) {
        const { entries } = expectOk(await attempt(csi.controller.listVolumes({})), 'ListVolumes')
        if (entries.some(({ volume }) => volume?.volumeId === volumeId)) violate('ListVolumes lists a deleted volume')
      }
      await sendCreateRequest(context, request, 'CreateVolume with the name of a deleted volume')
    },
  },
  {
    id: 'delete-in-use',
    title: 'DeleteVolume does not delete a volume in use',
    rule: {
      section: 'DeleteVolume Errors',
      level: 'must',
      text: 'A volume that a node has published cannot be deleted: the call fails with FAILED_PRECONDITION, and the volume stays usable.',
    },
    needs: { ...NEEDS, node: [] },
    async run(context) {
      const { volume, targetPath } = await mountVolume(context)
      const { volumeId } = volume
      const outcome = await attempt(context.csi.controller.deleteVolume({ volumeId }))
      expectCode(outcome, 'FAILED_PRECONDITION', `DeleteVolume of a volume that is published at ${targetPath}`)
    },
  },
  {
    id: 'validate-required-fields',
    title: 'ValidateVolumeCapabilities rejects a request without volume id or capabilities',
    rule: {
      section: 'Error Scheme; ValidateVolumeCapabilities',
      level: 'must',
      text: 'A request without a required field fails with INVALID_ARGUMENT.',
    },
    needs: NEEDS,
    async run(context) {
      const { controller } = context.csi
      const volumeCapabilities = [classCapability(context)]
      expectCode(
        await attempt(controller.validateVolumeCapabilities({ volumeCapabilities })),
        'INVALID_ARGUMENT',
        'ValidateVolumeCapabilities without a volume_id',
      )
      const { volumeId } = await createVolume(context)
      expectCode(
        await attempt(controller.validateVolumeCapabilities({ volumeId })),
        'INVALID_ARGUMENT',
        'ValidateVolumeCapabilities without volume_capabilities',
      )
    },
  },
  {
    id: 'validate-unknown',
    title: 'ValidateVolumeCapabilities of an unknown volume fails',
    rule: {
      section: 'ValidateVolumeCapabilities Errors',
      level: 'must',
      text: 'A volume that does not exist fails with NOT_FOUND.',
    },
    needs: { controller: [] },
    async run(context) {
      const request = { volumeId: UNKNOWN_ID, volumeCapabilities: [classCapability(context)] }
      const outcome = await attempt(context.csi.controller.validateVolumeCapabilities(request))
      expectCode(outcome, 'NOT_FOUND', 'ValidateVolumeCapabilities of an unknown id')
    },
  },
  {
    id: 'validate-confirms',
    title: 'ValidateVolumeCapabilities confirms the capabilities of CreateVolume',
    rule: {
      section: 'ValidateVolumeCapabilities',
      level: 'must',
      text: 'A volume has the capabilities with which it was created, so they are confirmed, and the response repeats them.',
    },
    needs: NEEDS,
    async run(context) {
      const volume = await createVolume(context)
      const request = {
        volumeId: volume.volumeId,
        volumeCapabilities: [classCapability(context)],
        volumeContext: volume.volumeContext,
        parameters: driverParameters(context),
        secrets: { ...context.settings.secrets.ControllerValidateVolumeCapabilitiesSecret },
      }
      const outcome = await attempt(context.csi.controller.validateVolumeCapabilities(request))
      const { confirmed, message } = expectOk(
        outcome,
        'ValidateVolumeCapabilities with the capabilities of CreateVolume',
      )
      if (!confirmed) violate(`the capabilities of CreateVolume are not confirmed: ${message || 'no message'}`)
      if (confirmed.volumeCapabilities.length === 0) violate('confirmed does not repeat the volume_capabilities')
    },
  },
]
