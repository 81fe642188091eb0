// Reads the time at which each capacity report last changed. The watches of the console omit managed fields, which contain this
// time, so the reports are polled every half minute.
import { useEffect, useState } from 'preact/hooks'
import { request } from '../../state/api.ts'

const INTERVAL_MS = 30_000

interface ReportList {
  readonly items?: readonly {
    readonly metadata: {
      readonly namespace?: string
      readonly name: string
      readonly creationTimestamp?: string
      readonly managedFields?: readonly { readonly time?: string }[]
    }
  }[]
}

/** The time of the last change in milliseconds, by namespace/name. Empty if the reports could not be read. */
export type ReportAges = ReadonlyMap<string, number>

export function useReportAges(): ReportAges {
  const [ages, setAges] = useState<ReportAges>(new Map())
  useEffect(() => {
    const controller = new AbortController()
    const read = () => {
      if (document.hidden) return
      request<ReportList>('/k8s/apis/storage.k8s.io/v1/csistoragecapacities', { signal: controller.signal }).then(
        ({ items = [] }) =>
          setAges(
            new Map(items.map(({ metadata }) => [`${metadata.namespace}/${metadata.name}`, changedMs(metadata)])),
          ),
        () => {}, // the age is then shown as unavailable
      )
    }
    read()
    const timer = setInterval(read, INTERVAL_MS)
    return () => {
      clearInterval(timer)
      controller.abort()
    }
  }, [])
  return ages
}

function changedMs({
  creationTimestamp,
  managedFields = [],
}: NonNullable<ReportList['items']>[number]['metadata']): number {
  const times = [creationTimestamp, ...managedFields.map(({ time }) => time)].flatMap((time) =>
    time ? [Date.parse(time)] : [],
  )
  return Math.max(0, ...times)
}

/** Returns the time at which the oldest of the reports was changed, or undefined if it is not known. */
export function oldestChange(reports: readonly string[], ages: ReportAges): number | undefined {
  const times = reports.flatMap((report) => ages.get(report) ?? [])
  return times.length === 0 ? undefined : Math.min(...times)
}
