// Follows an object until it is ready: diagnoses it repeatedly, and prints the result when it changes. Waits while the
// server is unavailable or overloaded.
import { ApiError } from '../../../api/status-error.ts'
import type { Clock } from '../../../base/clock.ts'
import type { DiagnoseResult, Diagnosis } from '../../../diagnosis/index.ts'

export interface FollowOptions {
  diagnose(): Promise<DiagnoseResult>
  /**
   * Formats the result without values that change between reads, such as ages. A result with the same text is not printed again.
   */
  formatForComparison(diagnosis: Diagnosis): string
  print(diagnosis: Diagnosis): void
  /** Prints a line about the connection. */
  note(message: string): void
  readonly clock: Clock
  readonly signal: AbortSignal
}

const PAUSE_MS_MIN = 2_000
/** The pause is this many times as long as the read, which bounds the load on the server of a large cluster. */
const PAUSE_FACTOR = 5

/**
 * Returns the last result: ready, not found or forbidden. Rejects with the error of the first read, and later with errors
 * other than those of a server that is unavailable or overloaded.
 */
export async function followObject(options: FollowOptions): Promise<DiagnoseResult> {
  const { clock, signal, note } = options
  let printedText: string | undefined
  let isAvailable = true
  for (;;) {
    const startedMs = clock.monotonicMs()
    try {
      const result = await options.diagnose()
      if (!isAvailable) note('the server is available again')
      isAvailable = true
      if (result.is !== 'diagnosed') return result
      const text = options.formatForComparison(result.diagnosis)
      if (text !== printedText) options.print(result.diagnosis)
      printedText = text
      if (result.diagnosis.state === 'ready') return result
    } catch (error) {
      if (printedText === undefined || !isTemporary(error)) throw error
      if (isAvailable) note(`the server is unavailable or overloaded; retrying: ${error.message}`)
      isAvailable = false
    }
    await clock.sleep(Math.max(PAUSE_MS_MIN, PAUSE_FACTOR * (clock.monotonicMs() - startedMs)), signal)
  }
}

const isTemporary = (error: unknown): error is ApiError =>
  error instanceof ApiError && (error.code === 429 || error.code >= 500)
