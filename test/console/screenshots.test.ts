// `npm run screenshots` takes the screenshots of docs/how-to/console.md. Other test runs only check that every view has a light
// and a dark one.
import { existsSync, statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { launchBrowser, openPage } from './browser.ts'
import { startConsole, startTestSystem } from './console.fixture.ts'
import { CLAIM_MANIFESTS, CLUSTER_MANIFESTS, READY_PODS } from './staged-shop.ts'

const DIR = join(import.meta.dirname, '../../docs/how-to/console')
const SCHEMES = ['light', 'dark'] as const
const BYTES_MAX = 150_000
const VIEWPORT = { width: 1120, height: 700 }

/** Shows each view before its screenshot is taken. */
const VIEWS: Readonly<Record<string, (page: Page) => Promise<void>>> = {
  overview: (page) => show(page, 'Overview'),
  claims: (page) => show(page, 'Claims'),
  claim: async (page) => {
    await show(page, 'Claims')
    await page.getByRole('grid').getByText('giant', { exact: true }).click()
    await page.getByRole('region', { name: 'Claim lab/giant' }).waitFor()
  },
  timeline: async (page) => {
    await show(page, 'Claims')
    await page.getByRole('grid').getByText('orders-db', { exact: true }).click()
    await page.getByRole('tab', { name: 'Timeline' }).click()
    await page.getByRole('img', { name: /^Timeline with/ }).waitFor()
  },
  capacity: (page) => show(page, 'Capacity'),
  nodes: (page) => show(page, 'Nodes'),
  operations: (page) => show(page, 'Operations'),
  quotas: (page) => show(page, 'Quotas'),
  drivers: (page) => show(page, 'Drivers'),
  bulk: (page) => show(page, 'Bulk'),
}

async function show(page: Page, screen: string): Promise<void> {
  await page.keyboard.press('Escape')
  await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: screen, exact: true }).click()
  await page.getByRole('heading', { level: 1, name: screen }).waitFor()
}

const pathOf = (view: string, scheme: string): string => join(DIR, `${view}-${scheme}.png`)

describe('the screenshots of the console', process.env.SCREENSHOTS ? makeScreenshots : checkScreenshots)

function checkScreenshots(): void {
  it('exist for every view, in light and dark, and are small', () => {
    const files = Object.keys(VIEWS).flatMap((view) => SCHEMES.map((scheme) => pathOf(view, scheme)))
    expect(files.filter((file) => !existsSync(file))).toEqual([])
    expect(files.filter((file) => statSync(file).size > BYTES_MAX)).toEqual([])
  })
}

function makeScreenshots(): void {
  it('are written to docs/how-to/console', { timeout: 600_000 }, async () => {
    const system = await startTestSystem()
    const console = await startConsole(system.server.kubeconfig)
    const browser = await launchBrowser()
    try {
      await system.apply(CLUSTER_MANIFESTS)
      await system.apply(CLAIM_MANIFESTS)
      for (const [namespace, name] of READY_PODS)
        await system.kubectl('wait', '-n', namespace, '--for=condition=Ready', `pod/${name}`, '--timeout=120s')
      await mkdir(DIR, { recursive: true })
      for (const colorScheme of SCHEMES) {
        const { page, close } = await openPage(browser, console.url, { colorScheme, viewport: VIEWPORT })
        for (const [view, showView] of Object.entries(VIEWS)) {
          await showView(page)
          await page.locator('.skeleton').first().waitFor({ state: 'detached' })
          await page.screenshot({ path: pathOf(view, colorScheme), animations: 'disabled', caret: 'hide' })
        }
        await close()
      }
    } finally {
      await browser.close()
      await console.stop()
      await system.remove()
    }
  })
}
