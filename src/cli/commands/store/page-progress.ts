// Shows the progress of reading the pages of a store.
import type { Clock } from '../../../base/clock.ts'
import { createWorkProgress, standardError, type WorkProgress } from '../../output/work-progress.ts'

/** Returns a function that shows the progress on standard error. */
export function createPageProgress(
  title: string,
  clock: Clock,
): (progress: { readonly pagesDone: number; readonly pagesTotal: number }) => void {
  let progress: WorkProgress | undefined
  return ({ pagesDone, pagesTotal }) => {
    progress ??= createWorkProgress({ title, unit: 'pages', total: pagesTotal, clock, output: standardError() })
    if (pagesDone === pagesTotal) progress.finish()
    else progress.set(pagesDone)
  }
}
