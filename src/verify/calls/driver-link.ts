// Connects the checks to the driver under test. Every call has a deadline in real time and is recorded, and its effects are
// tracked. Checks call the driver directly; the controllers call it through faults.ts.
import type { DescMethod, Message } from '@bufbuild/protobuf'
import type { Clock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import {
  type CallOptions,
  type CsiConnection,
  CsiError,
  callDriver,
  connectDriver,
  type SecretMask,
  type Transport,
} from '../../csi/index.ts'
import type { CallLog } from './call-log.ts'
import type { Inventory } from './inventory.ts'

/** Opens a connection to the socket. Tests connect to a driver in this process instead. */
export type OpenDriver = (address: string) => Pick<CsiConnection, 'identity' | 'controller' | 'node' | 'close'>

/** Responses are not redacted here, because verify searches them for secrets. The call log redacts them. */
const NO_MASK: SecretMask = { add() {}, mask: (text) => text }

export const openSocket =
  (clock: Clock): OpenDriver =>
  (address) =>
    connectDriver({ address, clock, log: silentLog, secretMask: NO_MASK })

export interface DriverLink {
  readonly send: Transport
  /** Whether a call has missed its deadline since the last reset. */
  readonly hasMissedDeadline: boolean
  resetDeadlines(): void
  close(): void
}

export interface DriverLinkOptions {
  readonly csiAddress: string
  /** The socket of the controller service. Default: csiAddress. */
  readonly controllerAddress?: string
  readonly open: OpenDriver
  /** Real time. */
  readonly clock: Clock
  readonly callTimeoutMs: number
  readonly log: CallLog
  readonly inventory: Inventory
}

/** The deadline for a method that has already missed one, so that a hanging driver does not delay every check. */
const HUNG_METHOD_TIMEOUT_MS = 1_000

export function createDriverLink(options: DriverLinkOptions): DriverLink {
  const { csiAddress, controllerAddress = csiAddress, open, clock, callTimeoutMs, log, inventory } = options
  const main = open(csiAddress)
  const controller = controllerAddress === csiAddress ? main : open(controllerAddress)
  const hungMethods = new Set<string>()
  let hasMissedDeadline = false

  async function send(method: DescMethod, request: Message, { signal }: CallOptions): Promise<Message> {
    const driver = method.parent.name === 'Controller' ? controller : main
    const timeoutMs = hungMethods.has(method.name) ? Math.min(HUNG_METHOD_TIMEOUT_MS, callTimeoutMs) : callTimeoutMs
    const call = log.begin(method, request, clock.monotonicMs())
    inventory.begin(method, request)
    try {
      const response = await callDriver(driver as CsiConnection, method, request, { timeoutMs, signal })
      call.succeed(response, clock.monotonicMs())
      inventory.succeed(method, request, response)
      return response
    } catch (error) {
      const { codeName, message } = error as CsiError
      call.fail(codeName ?? 'UNKNOWN', message, clock.monotonicMs())
      inventory.fail(method, request, error)
      if (error instanceof CsiError && codeName === 'DEADLINE_EXCEEDED') {
        hungMethods.add(method.name)
        hasMissedDeadline = true
      }
      throw error
    }
  }

  return {
    send,
    get hasMissedDeadline() {
      return hasMissedDeadline
    },
    resetDeadlines() {
      hasMissedDeadline = false
    },
    close() {
      main.close()
      if (controller !== main) controller.close()
    },
  }
}
