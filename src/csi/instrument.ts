// Logs every call to a driver with redacted secrets, records its duration and status code, and notes the call in its error.
// The name of the driver comes from its last GetPluginInfo response.
import type { DescMethod, Message } from '@bufbuild/protobuf'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { type CsiCode, CsiError } from './errors.ts'
import { type GetPluginInfoResponse, Identity } from './gen/csi_pb.js'
import type { CallObserver } from './metrics.ts'
import { redactLazily } from './redact.ts'
import type { SecretMask } from './secret-mask.ts'
import { pathOf, type Transport } from './transport.ts'

export interface InstrumentOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: CallObserver
}

interface MaskedInstrumentOptions extends InstrumentOptions {
  readonly secretMask: SecretMask
}

/** The label that the Kubernetes sidecars use until the driver has returned its name. */
const UNKNOWN_DRIVER = 'unknown-driver'

export function instrumentTransport(
  send: Transport,
  { clock, log, metrics, secretMask }: MaskedInstrumentOptions,
): Transport {
  let driverName = UNKNOWN_DRIVER
  return async (method: DescMethod, request: Message, options) => {
    const startMs = clock.monotonicMs()
    let code: CsiCode = 'OK'
    let failure: string | undefined
    log.debug(
      { method: pathOf(method), request: redactLazily(method.input, request, secretMask) },
      'calling the CSI driver',
    )
    try {
      const response = await send(method, request, options)
      log.debug(
        { method: pathOf(method), response: redactLazily(method.output, response, secretMask) },
        'the CSI call succeeded',
      )
      if (method === Identity.method.getPluginInfo)
        driverName = (response as GetPluginInfoResponse).name || UNKNOWN_DRIVER
      return response
    } catch (error) {
      const { codeName, message } = error as CsiError
      code = codeName
      failure = message
      if (error instanceof CsiError) error.call = { driver: driverName, method: method.name }
      log.debug({ method: pathOf(method), code, error: message }, 'the CSI call failed')
      throw error
    } finally {
      const seconds = (clock.monotonicMs() - startMs) / 1_000
      const volume = volumeOf(request)
      metrics?.observeCall({
        ...{ driverName, method: pathOf(method), code, seconds },
        ...(volume ? { volume } : {}),
        ...(failure ? { message: failure } : {}),
      })
    }
  }
}

/** Returns the name for a request without a volume ID: of the volume for CreateVolume, of the snapshot for CreateSnapshot. */
const volumeOf = (request: Message): string | undefined => {
  const { volumeId, name } = request as { volumeId?: string; name?: string }
  return volumeId || name
}
