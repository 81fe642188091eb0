// Checks the texts that a driver returns: every error has a message, and no response contains a secret.
import { withoutMessage } from '../../csi/index.ts'
import { attempt, type CallOutcome, expectOk } from '../calls/outcomes.ts'
import { type Check, violate } from '../check.ts'
import { createRequest, UNKNOWN_ID } from './requests.ts'

const NEEDS = { controller: ['CREATE_DELETE_VOLUME'] } as const
const SECRET_FIELD = 'stowage-verify'

export const textChecks: readonly Check[] = [
  {
    id: 'error-messages',
    title: 'a failed call has an error message',
    rule: {
      section: 'Error Scheme',
      level: 'must',
      text: 'The status of a failed call has a human-readable message.',
    },
    needs: NEEDS,
    async run(context) {
      const { controller } = context.csi
      const failures: Record<string, CallOutcome<unknown>> = {
        DeleteVolume: await attempt(controller.deleteVolume({})),
        CreateVolume: await attempt(controller.createVolume(createRequest(context, { name: '' }))),
        ValidateVolumeCapabilities: await attempt(controller.validateVolumeCapabilities({ volumeId: UNKNOWN_ID })),
      }
      for (const [method, { code, message }] of Object.entries(failures))
        if (code !== 'OK' && message === withoutMessage(method)) violate(`${method} failed with ${code} and no message`)
    },
  },
  {
    id: 'secrets-not-echoed',
    title: 'responses and error messages contain no secret',
    rule: {
      section: 'Secrets Requirements; CreateVolume, volume_context',
      level: 'must',
      text: 'Secrets are sensitive: a driver does not return them in the volume, its context or an error message.',
    },
    needs: NEEDS,
    async run(context) {
      const { csi, settings } = context
      const canary = `canary-${Math.floor(context.random() * 1e12).toString(36)}-secret`
      const secrets = { ...settings.secrets.CreateVolumeSecret, [SECRET_FIELD]: canary }
      const values = [canary, ...Object.values(settings.secrets.CreateVolumeSecret ?? {})].filter(
        (value) => value.length >= SECRET_CHARACTERS_MIN,
      )
      const expectNoSecret = (situation: string, outcome: CallOutcome<unknown>) => {
        const text = `${outcome.message} ${toText(outcome.response)}`
        const isEchoed = values.some(
          (value) => text.includes(value) || text.includes(Buffer.from(value).toString('base64')),
        )
        if (isEchoed) violate(`${situation} contains a secret of the request`)
      }
      const rejectedOutcome = await attempt(
        csi.controller.createVolume(createRequest(context, { secrets, volumeCapabilities: [] })),
      )
      expectNoSecret('the error of CreateVolume', rejectedOutcome)
      const createdOutcome = await attempt(csi.controller.createVolume(createRequest(context, { secrets })))
      expectNoSecret('the response of CreateVolume', createdOutcome)
      const { volume } = expectOk(createdOutcome, 'CreateVolume with secrets')
      const deleteSecrets = { ...settings.secrets.DeleteVolumeSecret, ...secrets }
      const request = { volumeId: volume?.volumeId ?? '', secrets: deleteSecrets }
      expectNoSecret('the response of DeleteVolume', await attempt(csi.controller.deleteVolume(request)))
    },
  },
]

/** Shorter values, such as "no", occur by coincidence. */
const SECRET_CHARACTERS_MIN = 4

const toText = (value: unknown): string =>
  JSON.stringify(value, (_key, item: unknown) => (typeof item === 'bigint' ? String(item) : item)) ?? ''
