// Checks the structure of the Grafana dashboard. test/operations.test.ts compares its queries with the served metrics.
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { type Panel, parseDashboard, queriesOf } from '../helpers/dashboard.ts'

const text = await readFile(new URL('../../charts/stowage/files/dashboard.json', import.meta.url), 'utf8')
const dashboard = parseDashboard(text)
const panels = dashboard.panels.filter(({ type }) => type !== 'row')

it('SYS-24 the dashboard shows claims, operations, capacity and latencies', () => {
  const rows = dashboard.panels.filter(({ type }) => type === 'row')
  expect(rows.map(({ title }) => title)).toEqual(['Claims', 'Operations', 'Capacity', 'Latencies'])
  expect(panels.length).toBeGreaterThan(20)
})

it('SYS-24 every panel of the dashboard has a title, a description and queries of the selected data source', () => {
  for (const { title, description, targets = [] } of panels) {
    expect([title, description, targets.length > 0]).toEqual([
      expect.stringMatching(/./),
      expect.stringMatching(/\.$/),
      true,
    ])
  }
  const sources = [...text.matchAll(/"uid": "([^"]+)"/g)].map(([, uid]) => uid)
  expect(sources.filter((uid) => !/^(\$\{datasource\}|stowage)$/.test(uid!))).toEqual([])
  expect(queriesOf(dashboard).length).toBe(panels.flatMap(({ targets = [] }) => targets).length + 1)
})

it('panels of the dashboard have unique IDs and do not overlap in the grid of 24 columns', () => {
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length)
  const overlaps = dashboard.panels.flatMap((panel, index) =>
    dashboard.panels
      .slice(index + 1)
      .filter((candidate) => isOverlapping(panel, candidate))
      .map((candidate) => `${panel.title} and ${candidate.title}`),
  )
  expect(overlaps).toEqual([])
  expect(dashboard.panels.filter(({ gridPos: { x, w } }) => x < 0 || x + w > 24)).toEqual([])
})

const isOverlapping = ({ gridPos: a }: Panel, { gridPos: b }: Panel): boolean =>
  a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h
