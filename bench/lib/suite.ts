// A suite is a list of parts, each of which measures some figures in a directory of its own; main.ts lists the suites and
// run-suites.ts runs them.
import type { Figure } from './figure.ts'

export interface Suite {
  readonly parts: Readonly<Record<string, MeasurePart>>
}

export type MeasurePart = (options: PartOptions) => Promise<Figure[]>

export interface PartOptions {
  /** An empty directory on the disk that is measured; removed afterwards. */
  readonly dir: string
  /** Where the measured processes leave CPU profiles. They are slower then. */
  readonly profileDir?: string
  /** More rounds, longer ones and larger sizes than fit into the ten minutes. */
  readonly long: boolean
  progress(text: string): void
  /** A sentence to print below the table: what the figures mean. */
  note(text: string): void
  /** A figure that cannot be had here; the table says why. */
  missing(name: string, because: string): void
}
