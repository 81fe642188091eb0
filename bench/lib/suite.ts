// A suite has parts, each of which measures some figures in its own directory. main.ts lists the suites, run-suites.ts
// runs them.
import type { Figure } from './figure.ts'

export interface Suite {
  readonly parts: Readonly<Record<string, MeasurePart>>
  /** Set if the suite runs only when it is named. */
  readonly isOptional?: true
  /**
   * Set if --against runs the suite once, with the programs of both builds in turns, instead of once per build and round. It has
   * an effect only if it is set for all suites of the run.
   */
  readonly comparesInOneRun?: true
}

/** Another build, whose programs are measured in turns with those of this build. */
export interface OtherBuild {
  /** The commit, or the directory given with --beside. */
  readonly name: string
  /** The directory of its programs. */
  readonly programs: string
}

export type MeasurePart = (options: PartOptions) => Promise<Figure[]>

export interface PartOptions {
  /** An empty directory on the measured disk; removed afterwards. */
  readonly dir: string
  /** Where the measured processes write CPU profiles, which slows them down. */
  readonly profileDir?: string
  /** Set with --against and --beside, for suites that compare in turns. */
  readonly beside?: OtherBuild
  /** Whether to run more, longer and larger rounds than fit into ten minutes. */
  readonly isLong: boolean
  progress(text: string): void
  /** Adds a sentence below the table. */
  note(text: string): void
  /** Reports a figure that cannot be measured here, and why. */
  reportMissing(name: string, message: string): void
}
