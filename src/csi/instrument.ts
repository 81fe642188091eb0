// Logs every call to a driver, with secrets redacted, and records its duration and status code. The driver's name comes
// from its last GetPluginInfo response.
import type { DescMethod, Message } from '@bufbuild/protobuf'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { pathOf, type Transport } from './driver.ts'
import type { CsiCode, CsiError } from './errors.ts'
import { type GetPluginInfoResponse, Identity } from './gen/csi_pb.js'
import type { CallObserver } from './metrics.ts'
import { redactLazily } from './redact.ts'

export interface InstrumentOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: CallObserver
}

/** The label that the Kubernetes sidecars use until the driver has returned its name. */
const UNKNOWN_DRIVER = 'unknown-driver'

export function instrument(send: Transport, { clock, log, metrics }: InstrumentOptions): Transport {
  let driverName = UNKNOWN_DRIVER
  return async (method: DescMethod, request: Message, options) => {
    const startedMs = clock.monotonicMs()
    let code: CsiCode = 'OK'
    log.debug({ method: pathOf(method), request: redactLazily(method.input, request) }, 'calling the CSI driver')
    try {
      const reply = await send(method, request, options)
      log.debug({ method: pathOf(method), reply: redactLazily(method.output, reply) }, 'the CSI call succeeded')
      if (method === Identity.method.getPluginInfo) driverName = (reply as GetPluginInfoResponse).name || UNKNOWN_DRIVER
      return reply
    } catch (error) {
      const { codeName, message } = error as CsiError
      code = codeName
      log.debug({ method: pathOf(method), code, error: message }, 'the CSI call failed')
      throw error
    } finally {
      const seconds = (clock.monotonicMs() - startedMs) / 1_000
      metrics?.called({ driverName, method: pathOf(method), code, seconds })
    }
  }
}
