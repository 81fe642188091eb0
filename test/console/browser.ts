// Drives Debian's chromium, headless, through playwright-core, and checks pages for accessibility with axe-core. openPage
// records console errors, exceptions, violations of the content security policy and requests to other hosts; console.test.ts
// fails on any of them. If CI is set, a missing browser fails the tests that need it; otherwise they are skipped.
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const EXECUTABLE = process.env.CHROMIUM ?? '/usr/bin/chromium'
const FLAGS = [
  ...['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--no-first-run'],
  ...['--font-render-hinting=none', '--disable-lcd-text', '--force-color-profile=srgb'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-quic'],
]

/** Returns why tests that need a browser are skipped, or undefined if they run. */
export function browserSkipReason(): string | undefined {
  if (existsSync(EXECUTABLE) || process.env.CI) return undefined
  return `${EXECUTABLE} is not installed (Debian: chromium; or set CHROMIUM to the path of one)`
}

export const launchBrowser = (): Promise<Browser> => chromium.launch({ executablePath: EXECUTABLE, args: FLAGS })

export interface OpenPage {
  readonly page: Page
  /** Errors of the page so far. The caller checks them. */
  readonly errors: readonly string[]
  close(): Promise<void>
}

/** Opens a URL in a new context, which has its own cookies and connections. */
export async function openPage(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    deviceScaleFactor: 1,
    locale: 'en-GB',
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
    ...options,
  })
  const page = await context.newPage()
  const errors: string[] = []
  page.on('pageerror', (error) => errors.push(`exception: ${error.stack ?? error.message}`))
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(`console: ${message.text()} ${message.location().url}`)
  })
  page.on('request', (request) => {
    const { hostname, protocol } = new URL(request.url())
    if (hostname !== '127.0.0.1' && protocol !== 'data:') errors.push(`request to another host: ${request.url()}`)
  })
  await page.goto(url)
  return { page, errors, close: () => context.close() }
}

interface AxeViolation {
  readonly id: string
  readonly help: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** Returns the violations that axe-core finds, one line for each element. */
export async function findAccessibilityProblems(page: Page): Promise<string[]> {
  // Evaluated through the DevTools protocol, because the content security policy blocks a script element.
  await page.evaluate(readFileSync(axePath, 'utf8'))
  const violations = (await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'], runOnly: { type: 'tag', values: ${JSON.stringify(AXE_TAGS)} } })
      .then(({ violations }) => violations.map(({ id, help, nodes }) => ({ id, help,
        nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })) })))`,
  )) as AxeViolation[]
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id} (${help}): ${html.slice(0, 200)}: ${failureSummary}`),
  )
}
