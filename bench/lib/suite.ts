// What every suite is given; main.ts lists the suites.
import type { Figure } from './figure.ts'

export interface SuiteOptions {
  /** Measure only these parts of the suite; all of them when empty. */
  readonly parts: readonly string[]
  /** Where scratch directories are made, and so whose disk is measured. Default: the system's temporary directory. */
  readonly dir?: string
  /** Where the measured processes leave CPU profiles. They are slower then. */
  readonly profileDir?: string
  progress(text: string): void
  /** A sentence to print below the table: what the figures mean, or why some are missing. */
  note(text: string): void
}

export type Suite = (options: SuiteOptions) => Promise<Figure[]>
