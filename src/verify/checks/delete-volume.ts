// Checks DeleteVolume.
import { attempt, expectCode, expectOk } from '../calls/outcomes.ts'
import { type Check, violate } from '../check.ts'
import {
  classCapability,
  createRequest,
  createVolume,
  deleteVolume,
  findListedEntry,
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
      text: 'After DeleteVolume succeeded, ValidateVolumeCapabilities fails with NOT_FOUND, ListVolumes omits the volume, and its name can be used again.',
    },
    needs: NEEDS,
    async run(context) {
      const { csi } = context
      const request = createRequest(context)
      const { volumeId } = await sendCreateRequest(context, request, 'CreateVolume')
      await deleteVolume(context, volumeId)
      const validation = { volumeId, volumeCapabilities: [classCapability(context)] }
      const outcome = await attempt(csi.controller.validateVolumeCapabilities(validation))
      expectCode(outcome, 'NOT_FOUND', 'ValidateVolumeCapabilities of a deleted volume')
      if (await findListedEntry(context, volumeId)) violate('ListVolumes has a deleted volume')
      await sendCreateRequest(context, request, 'CreateVolume with the name of a deleted volume')
    },
  },
  {
    id: 'delete-in-use',
    title: 'DeleteVolume does not delete a volume in use',
    rule: {
      section: 'DeleteVolume Errors',
      level: 'must',
      text: 'A volume that a node has published cannot be deleted: the call fails with FAILED_PRECONDITION.',
    },
    needs: { ...NEEDS, node: [] },
    async run(context) {
      const { volume, targetPath } = await mountVolume(context)
      const { volumeId } = volume
      const outcome = await attempt(context.csi.controller.deleteVolume({ volumeId }))
      expectCode(outcome, 'FAILED_PRECONDITION', `DeleteVolume of a volume that is published at ${targetPath}`)
    },
  },
]
