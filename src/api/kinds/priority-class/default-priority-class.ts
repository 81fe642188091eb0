// Finds the default among priority classes. Admission allows only one, but concurrent writes on several servers can leave
// more. In that case, the smallest value applies, so that no pod receives a high priority by accident.
import type { PriorityClass } from './priority-class-schema.ts'

export function findDefaultPriorityClass<T extends Pick<PriorityClass, 'value' | 'globalDefault'>>(
  classes: readonly T[],
): T | undefined {
  let defaultClass: T | undefined
  for (const candidate of classes) {
    if (candidate.globalDefault && (!defaultClass || candidate.value < defaultClass.value)) defaultClass = candidate
  }
  return defaultClass
}
