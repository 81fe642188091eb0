// Checks ValidateVolumeCapabilities.
import { attempt, expectCode, expectOk } from '../calls/outcomes.ts'
import { type Check, violate } from '../check.ts'
import { classCapability, createVolume, driverParameters, UNKNOWN_ID } from './requests.ts'

const NEEDS = { controller: ['CREATE_DELETE_VOLUME'] } as const

export const validateVolumeChecks: readonly Check[] = [
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
