// Measures the console: the size of the page, and in headless chromium on a server with many claims the time until the table
// has its first row and all rows, the memory of the tab, and the longest task of the main thread while the table loads, scrolls
// and filters.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { CDPSession, Page } from 'playwright-core'
import { browserSkipReason, launchBrowser, openPage } from '../test/console/browser.ts'
import { fillDirectory } from './lib/claims.ts'
import type { Figure } from './lib/figure.ts'
import { startConsole, startServer } from './lib/server-process.ts'
import type { PartOptions, Suite } from './lib/suite.ts'
import { formatCount } from './lib/text.ts'

const SIZES = [10_000, 50_000]
const BUNDLE_KB_MAX = 120
const FIRST_VIEW_MS_MAX = 1_000
const LONG_TASK_MS_MAX = 100
const SCROLL_STEPS = 60

export const consoleSuite: Suite = { parts: { page: measureConsole }, isOptional: true }

async function measureConsole(options: PartOptions): Promise<Figure[]> {
  const bundle = {
    name: 'page, compressed',
    unit: 'kB',
    value: bundleKb(),
    target: { valueMax: BUNDLE_KB_MAX },
  } as const
  const skipReason = browserSkipReason()
  if (skipReason) {
    options.reportMissing('console in a browser', skipReason)
    return [bundle]
  }
  const figures: Figure[] = [bundle]
  for (const count of SIZES) figures.push(...(await measureClaims(count, options)))
  return figures
}

async function measureClaims(count: number, { dir, progress }: PartOptions): Promise<Figure[]> {
  const dataDir = join(dir, `console-${count}`)
  progress(`creating ${formatCount(count)} claims`)
  await fillDirectory(dataDir, count)
  const server = await startServer({ dataDir })
  const console = await startConsole(join(dataDir, 'admin.kubeconfig'))
  const browser = await launchBrowser()
  try {
    progress(`opening the console with ${formatCount(count)} claims`)
    const { page: firstPage } = await openPage(browser, console.url) // starts the session
    await firstPage.getByRole('heading', { name: 'Overview' }).waitFor()
    const page = await firstPage.context().newPage()
    await firstPage.close()
    const session = await page.context().newCDPSession(page)
    await page.addInitScript(OBSERVE_LONG_TASKS)
    await page.goto(`${new URL(console.url).origin}/#/claims`)
    await page.locator(`[role=grid][aria-rowcount="${count + 1}"]`).waitFor()
    return await measurePage(page, session, count)
  } finally {
    await browser.close()
    await console.stop()
    await server.stop()
  }
}

/** Runs in the page. Records the time at which the first row appears, and the length of every long task. */
const OBSERVE_LONG_TASKS = `
  window.longTasks = []
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.longTasks.push(duration)
  }).observe({ type: 'longtask', buffered: true })
  new MutationObserver((_, observer) => {
    if (!document.querySelector('[role=grid] [role=gridcell]')) return
    window.firstRowMs = performance.now()
    observer.disconnect()
  }).observe(document, { childList: true, subtree: true })
`

async function measurePage(page: Page, session: CDPSession, count: number): Promise<Figure[]> {
  const completeMs = Number(await page.evaluate('performance.now()'))
  const firstRowMs = Number(await page.evaluate('window.firstRowMs'))
  const loadTaskMs = await longestTask(page)
  const grid = page.getByRole('grid')
  await grid.hover()
  for (let step = 0; step < SCROLL_STEPS; step++) await page.mouse.wheel(0, (count * 34) / SCROLL_STEPS)
  const scrollTaskMs = await longestTask(page)
  await page.keyboard.press('/')
  await page.keyboard.type('stored-0099')
  await page.locator(`[role=grid]:not([aria-rowcount="${count + 1}"])`).waitFor()
  const filterTaskMs = await longestTask(page)
  await session.send('HeapProfiler.collectGarbage')
  const { usedSize } = await session.send('Runtime.getHeapUsage')
  const of = `${formatCount(count)} claims`
  const longTask = { unit: 'ms', target: { valueMax: LONG_TASK_MS_MAX } } as const
  return [
    { name: `first row, ${of}`, unit: 'ms', value: firstRowMs, target: { valueMax: FIRST_VIEW_MS_MAX } },
    { name: `all rows, ${of}`, unit: 'ms', value: completeMs },
    { name: `longest task while loading, ${of}`, ...longTask, value: loadTaskMs },
    { name: `longest task while scrolling, ${of}`, ...longTask, value: scrollTaskMs },
    { name: `longest task while filtering, ${of}`, ...longTask, value: filterTaskMs },
    { name: `heap of the tab, ${of}`, unit: 'MB', value: usedSize / 1_000_000 },
  ]
}

/** Returns the duration of the longest task since the last call, or 0 if none took more than 50 ms. */
const longestTask = async (page: Page): Promise<number> =>
  Number(await page.evaluate('Math.max(0, ...window.longTasks.splice(0))'))

/** Returns the compressed size of all files that the page can load. The directory may also contain files of earlier builds. */
function bundleKb(): number {
  const pageDir = join(dirname(process.argv[1]!), 'console')
  const names = readdirSync(pageDir).filter((name) => /\.(js|css|html|svg)$/.test(name))
  const loadedNames = new Set(['index.html'])
  for (const loadedName of loadedNames) {
    const text = readFileSync(join(pageDir, loadedName), 'utf8')
    for (const name of names) if (text.includes(name)) loadedNames.add(name)
  }
  return [...loadedNames].reduce((sum, name) => sum + statSync(join(pageDir, `${name}.gz`)).size, 0) / 1_000
}
