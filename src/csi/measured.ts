// Calls to a driver as the operator sees them: each is logged without its secrets, and counted by how long it took and
// how it ended. The name of the driver is the one it last gave.
import type { DescMethod, Message } from '@bufbuild/protobuf'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import { type Carry, pathOf } from './driver.ts'
import type { CsiCode, CsiError } from './errors.ts'
import { type GetPluginInfoResponse, Identity } from './gen/csi_pb.js'
import type { CallObserver } from './metrics.ts'
import { redacted } from './redact.ts'

export interface MeasuredOptions {
  readonly clock: Clock
  readonly log: Logger
  readonly metrics?: CallObserver
}

/** As upstream's callers name a driver until it has said its name. */
const NAMELESS = 'unknown-driver'

export function measured(send: Carry, { clock, log, metrics }: MeasuredOptions): Carry {
  let driverName = NAMELESS
  return async (method: DescMethod, request: Message, options) => {
    const startedMs = clock.monotonicMs()
    let code: CsiCode = 'OK'
    log.debug({ method: pathOf(method), request: redacted(method.input, request) }, 'calling the CSI driver')
    try {
      const reply = await send(method, request, options)
      log.debug({ method: pathOf(method), reply: redacted(method.output, reply) }, 'the CSI driver answered')
      if (method === Identity.method.getPluginInfo) driverName = (reply as GetPluginInfoResponse).name || NAMELESS
      return reply
    } catch (error) {
      const { codeName, message } = error as CsiError
      code = codeName
      log.debug({ method: pathOf(method), code, error: message }, 'a call to the CSI driver failed')
      throw error
    } finally {
      const seconds = (clock.monotonicMs() - startedMs) / 1_000
      metrics?.called({ driverName, method: pathOf(method), code, seconds })
    }
  }
}
