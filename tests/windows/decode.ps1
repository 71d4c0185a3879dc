# Records a trace, decodes it with tracerpt, Get-WinEvent and TDH, and compares the results with those
# of this project's reader: here, if the kit has the reader, and on the host of a virtual machine.
param(
    [Parameter(Mandatory = $true)] [string] $Kit,
    [Parameter(Mandatory = $true)] [string] $Out
)
. (Join-Path $PSScriptRoot 'common.ps1')

Invoke-Stage 'decode' $Kit $Out {
    param($Stage)
    $client = Get-Client $Stage
    $path = Join-Path $Stage.Kit 'recipes.json'
    if (-not $client -or -not (Test-Path -LiteralPath $path)) {
        Skip-Stage $Stage 'the kit has no client or no recipes.json, which make the events'
        return
    }
    $recipes = ConvertFrom-Json ([IO.File]::ReadAllText($path))
    $traffic = Get-Value $recipes 'traffic'
    $provider = Get-Provider $Stage
    if (-not $traffic -or -not $provider) {
        Skip-Stage $Stage 'the kit names no provider, or recipes.json has no requests that make events'
        return
    }
    $session = 'wdk-etw-decode'
    $trace = Join-Path $Stage.Folder 'decode.etl'
    [void] (Invoke-Checked $Stage 'start' 'logman.exe' "create trace $session -ow -o `"$trace`" -p `"{$provider}`" 0xffffffffffffffff 5 -ets")
    try {
        Send-Traffic $Stage 'traffic' $traffic
    } finally {
        [void] (Invoke-Checked $Stage 'stop' 'logman.exe' "stop $session -ets")
    }

    [void] (Invoke-Checked $Stage 'tracerpt' 'tracerpt.exe' "`"$trace`" -o tracerpt.xml -of XML -lr -y")
    $report = New-Object Xml.XmlDocument
    $report.Load((Join-Path $Stage.Folder 'tracerpt.xml'))
    $guid = "{$provider}"
    $ours = @($report.Events.Event | Where-Object { $_.System.Provider.Guid -eq $guid })

    $events = @(Get-TraceEvents $trace $provider)
    $decoded = @($events | ForEach-Object {
        @{ id = $_.Id; level = $_.Level; task = $_.TaskDisplayName; message = $_.Message; xml = $_.ToXml() }
    })
    Write-Json (Join-Path $Stage.Folder 'winevent.json') @{ events = [object[]] $decoded }

    # The client decodes the same file with TDH.
    [void] (Invoke-Checked $Stage 'tdh' $client "trace --json --file `"$trace`" --provider $provider")
    Move-Item -Force -LiteralPath (Join-Path $Stage.Folder 'tdh.log') (Join-Path $Stage.Folder 'tdh.jsonl')

    $lines = @([IO.File]::ReadAllLines((Join-Path $Stage.Folder 'tdh.jsonl')) | Where-Object { $_.Trim() })
    Add-Check $Stage 'events by tracerpt' $recipes.traffic_events $ours.Count
    Add-Check $Stage 'events by Get-WinEvent' $recipes.traffic_events $events.Count
    Add-Check $Stage 'events by TDH' $recipes.traffic_events $lines.Count
    # If the kit has this project's reader, it decodes the same file.
    $reader = Get-KitPath $Stage 'tools/etl.exe'
    if (Test-Path -LiteralPath $reader) {
        $image = Get-KitPath $Stage "package/$($Stage.Plan.driver.sys)"
        $dump = Invoke-Checked $Stage 'etl-dump' $reader "dump --format json --image `"$image`" `"$trace`""
        Add-Check $Stage 'etl dump: events' 'some' $dump.Text.Length ($dump.Text.Length -gt 0)
        # 0: equal, 1: differences, 2: a file that cannot be read. The log lists them.
        $compared = Invoke-Program $Stage 'etl-compare' $reader "compare --image `"$image`" --provider $provider `"$trace`" tracerpt.xml winevent.json tdh.jsonl"
        Write-Host $compared.Text
        Add-Check $Stage 'etl compare: every field is equal' 0 $compared.Code
    }
}
